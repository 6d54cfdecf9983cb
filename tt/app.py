"""The click tree, made lazily from `tt.table`: help, completion, errors and everything rare.

Loaded only when the light reader has left a call to it. A command of the tree is made when it
is named; `tt --help` makes none and loads no handler. click's own errors become BusErrors.
"""

from __future__ import annotations

import click

from bus.errors import BusError
from tt import __version__, grammar, pages, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Invoke = Callable[[grammar.Command, dict[str, Any]], int]

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def run(argv: list[str], invoke: Invoke) -> int:
    """Read the call and give it to `invoke`; the exit code. Usage errors are raised as BusError `usage`."""
    called = []

    def then(command: grammar.Command, values: dict[str, Any]) -> int:
        called.append(command)
        return invoke(command, values)

    root = Words((), then)
    try:
        code = root.main(argv, prog_name="tt", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        raise BusError("usage", "which command?", _hint(error)) from error
    except click.UsageError as error:
        raise BusError("usage", error.format_message(), _hint(error)) from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except OSError:
        if called:
            raise
        _unprinted()  # click's own words, such as help, went to a stdout that takes none
        return 0
    return code if isinstance(code, int) else 0


def _unprinted() -> None:
    """Say it as any command says it."""
    from tt import output

    output.silence()
    output.note({"text": True}, {}, "the text could not be printed")


def _hint(error: click.UsageError) -> str:
    """The help that would have answered."""
    path = error.ctx.command_path if error.ctx else "tt"
    return f"{path} --help"


class Words(click.Group):
    """The root, or words that lead to other words. Knows its commands from the table only."""

    def __init__(self, words: tuple[str, ...], invoke: Invoke) -> None:
        """Make the options of this level, and nothing below it."""
        self.words = words
        self.then = invoke
        params: list[click.Parameter] = [_option(option) for option in grammar.GLOBALS]
        if not words:
            params.append(_version())
        text = table.GROUPS[words[0]] if words else pages.ROOT
        example = pages.GROUPS[words[0]] if words else pages.ROOT_EXAMPLE
        super().__init__(
            name=words[-1] if words else "tt",
            params=params,
            help=text,
            epilog=_example(example),
            context_settings=_SETTINGS,
            no_args_is_help=False,
        )

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The next words, in the order of the table."""
        return list(self._next())

    def _next(self) -> dict[str, str]:
        """The next words with their one-line help."""
        size = len(self.words)
        found: dict[str, str] = {}
        for command in table.COMMANDS:
            if command.words[:size] == self.words:
                word = command.words[size]
                found[word] = command.help if len(command.words) == size + 1 else table.GROUPS[word]
        return found

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Make the command of this word, or the next level; None if there is none."""
        words = (*self.words, name)
        command = table.find(words)
        if command is not None:
            return _command(command, self.then)
        if not self.words and name in table.GROUPS:
            return Words(words, self.then)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest word for a misspelt one."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without making any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._next().items()))


def _command(command: grammar.Command, invoke: Invoke) -> click.Command:
    """The click command of one line of the table."""

    def callback(**values: Any) -> int:
        ctx = click.get_current_context()
        return invoke(command, _merge(command, values, ctx))

    text, example = pages.PAGES[command.title]
    params: list[click.Parameter] = [_argument(argument) for argument in command.arguments]
    params += [_option(option) for option in grammar.options_of(command)]
    return click.Command(
        command.words[-1],
        params=params,
        callback=callback,
        help=f"{command.help}.\n\n{_fixed(text, command)}",
        short_help=command.help,
        epilog=_example(example),
        context_settings=_SETTINGS,
    )


def _merge(command: grammar.Command, values: dict[str, Any], ctx: click.Context) -> dict[str, Any]:
    """Global options given before the words, where the command itself wasn't given them."""
    for outer in _outer(ctx):
        for option in grammar.GLOBALS:
            value = outer.params.get(option.name)
            if value is None or value is False:
                continue
            if option.flag == "--path" and command.takes_path:
                message = f"the path is an argument here: tt {command.title} … PATH"
                raise click.UsageError(message, ctx)
            if not values.get(option.name):
                values[option.name] = value
    return values


def _outer(ctx: click.Context) -> list[click.Context]:
    """The contexts around this one, nearest first."""
    found = []
    while ctx.parent is not None:
        ctx = ctx.parent
        found.append(ctx)
    return found


def _option(option: grammar.Option) -> click.Option:
    """One option; values stay text, `grammar.finish` converts them."""
    if option.kind == "flag":
        return click.Option([option.flag, option.name], is_flag=True, help=option.help)
    shown = "|".join(option.choices) if option.choices else option.metavar
    text = option.help + (f"  [default: {option.default}]" if option.default else "")
    return click.Option(
        [option.flag, option.name],
        metavar=shown,
        help=text,
        multiple=option.multiple,
        type=_Text(option.choices),
    )


def _argument(argument: grammar.Argument) -> click.Argument:
    """One positional argument, or all the words that are left."""
    shown = "|".join(argument.choices) if argument.choices else argument.name.upper()
    shown = shown if argument.required else f"[{shown}]"
    return click.Argument(
        [argument.name],
        required=argument.required,
        nargs=-1 if argument.many else 1,
        metavar=shown + ("..." if argument.many else ""),
        type=_Text(argument.choices),
    )


class _Text(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """Text as it came, surrogates included; knows choices for completion only."""

    name = "text"

    def __init__(self, choices: tuple[str, ...]) -> None:
        """Keep what completion may offer."""
        self.choices = choices

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> Any:
        """Change nothing."""
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer the choices."""
        return [
            click.shell_completion.CompletionItem(choice) for choice in self.choices if choice.startswith(incomplete)
        ]


def _version() -> click.Option:
    """`--version`, which does nothing else."""

    def show(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(f"tt {__version__}")
            ctx.exit()

    return click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="print the version",
    )


def _fixed(text: str, command: grammar.Command) -> str:
    """The longer help, with the positional words explained, which click leaves out."""
    lines = [f"  {argument.name.upper():<12} {argument.help}" for argument in command.arguments]
    return text + ("\n\n\b\n" + "\n".join(lines) if lines else "")


def _example(example: str) -> str:
    """The example as it was written."""
    body = "\n".join("  " + line for line in example.splitlines())
    return f"\b\nExample:\n{body}"
