"""What a command is made of, and how its texts become values.

Both readers of the command line, click and `tt.quick`, end in `finish`: the one place where
values are checked and converted, so that they cannot understand a call differently.
"""

from __future__ import annotations

from bus.errors import BusError
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Argument(Record):
    """A positional word. `many` takes all that are left; kinds are those of `Option`."""

    name: str
    help: str
    required: bool = False
    many: bool = False
    kind: str = "text"
    choices: tuple[str, ...] = ()
    error: str = "invalid_input"


class Option(Record):
    """A `--name`. `kind`: flag, text, path, body (checked by `tt.body`), int, duration, choice, words.

    `int` gives an int, `duration` milliseconds, `words` a tuple of comma-separated words.
    `error` is the code of a value that doesn't fit.
    """

    flag: str
    help: str
    kind: str = "flag"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: str | None = None
    multiple: bool = False
    error: str = "invalid_input"

    @property
    def name(self) -> str:
        """The key in the parsed call."""
        return self.flag[2:].replace("-", "_")


class Command(Record):
    """One verb. `words` is its path, `exclusive` are groups of options that exclude each other."""

    words: tuple[str, ...]
    help: str
    handler: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    exclusive_error: str = "usage"
    hot: bool = False

    @property
    def title(self) -> str:
        """The words as people type them."""
        return " ".join(self.words)

    @property
    def takes_path(self) -> bool:
        """Whether the path is positional here, which makes `--path` a usage error."""
        return any(argument.name == "path" for argument in self.arguments)


# Understood by every command, before or after its words. `--path` only where no path is positional.
GLOBALS = (
    Option("--agent", "act as this agent", "text", "ID"),
    Option("--path", "act on the room of this directory", "path", "DIR"),
    Option("--json", "print JSON"),
    Option("--text", "print text, whoever calls"),
    Option("--verbose", "print everything there is"),
)


def options_of(command: Command) -> tuple[Option, ...]:
    """Its own options and the global ones, where an own option comes first."""
    own = {option.flag for option in command.options}
    own |= {"--" + argument.name for argument in command.arguments if argument.name == "path"}
    return command.options + tuple(option for option in GLOBALS if option.flag not in own)


def blank(command: Command) -> dict[str, Any]:
    """What a call of this command without any word would be, before `finish`."""
    raw: dict[str, Any] = {option.name: _nothing(option) for option in (*GLOBALS, *command.options)}
    raw.update({argument.name: () if argument.many else None for argument in command.arguments})
    return raw


def _nothing(option: Option) -> object:
    """The value of an option that wasn't given."""
    if option.kind == "flag":
        return False
    return () if option.multiple else None


def finish(command: Command, raw: dict[str, Any]) -> dict[str, Any]:
    """Texts into values: the one place where both readers check and convert.

    `raw` has strings, True/False and tuples of strings. The result has every key of the
    command and the global options, and `command` with the words. BusError on what doesn't fit.
    """
    args = blank(command)
    args.update(raw)
    given = {name for name, value in args.items() if value not in (None, False, ())}
    for group in command.exclusive:
        both = [name for name in group if name in given]
        if len(both) > 1:
            names = " and ".join("--" + name.replace("_", "-") for name in both)
            raise BusError(command.exclusive_error, f"{names} exclude each other", _help_hint(command))
    for spec in _specs(command):
        try:
            args[spec.name] = _value(spec, args[spec.name])
        except BusError as error:
            error.hint = _help_hint(command)
            raise
    args["command"] = command.title
    return args


def _specs(command: Command) -> Iterator[Argument | Option]:
    """Everything that takes a value."""
    yield from command.arguments
    for option in (*GLOBALS, *command.options):
        if option.kind != "flag":
            yield option


def _value(spec: Argument | Option, value: Any) -> Any:
    """One value of a spec, or each of several."""
    if value is None and isinstance(spec, Option):
        value = spec.default
    if value is None:
        return None
    if isinstance(value, tuple):
        parts = [convert(spec, text) for text in value]
        if spec.kind == "words":
            return tuple(word for part in parts for word in part)
        return tuple(parts)
    return convert(spec, value)


def convert(spec: Argument | Option, text: str) -> Any:
    """The typed value of one text, or BusError with the code that the spec names."""
    label = spec.flag if isinstance(spec, Option) else spec.name.upper()
    if spec.kind == "body":
        return text
    if spec.kind == "path" and ("\0" in text or not text):
        raise BusError(spec.error, f"{label} {'contains a NUL' if text else 'is empty'}")
    if spec.kind == "path":  # a directory may have any bytes as its name
        return text
    if not _is_text(text):
        raise BusError(spec.error, f"{label} is not valid UTF-8 text")
    if spec.kind == "int":
        if not _is_number(text, _INT_DIGITS):
            raise BusError(spec.error, f"{label} must be a whole number, not {text[:80]!r}")
        return int(text)
    if spec.kind == "duration":
        return duration(text, label)
    if spec.kind == "choice" and text not in spec.choices:
        raise BusError(spec.error, f"{label} must be one of {', '.join(spec.choices)}, not {text[:80]!r}")
    if spec.kind == "words":
        return _words(text, label, spec.error)
    return text


def _words(text: str, label: str, error: str) -> tuple[str, ...]:
    """Comma-separated words; an empty one is a mistake, not a filter for everything."""
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise BusError(error, f"{label} has an empty entry: {text[:80]!r}")
    return words


_INT_DIGITS = 18  # what SQLite stores
_DURATION_DIGITS = 9  # of hours: 100,000 years
_UNITS = (("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000))


def duration(text: str, label: str) -> int:
    """Milliseconds of bare seconds or a number with ms, s, m or h. Strict: `1.5`, `-1`, `5 s` are errors."""
    number, factor = text, 1000
    for unit, size in _UNITS:
        if text.endswith(unit):
            number, factor = text[: -len(unit)], size
            break
    if not _is_number(number, _DURATION_DIGITS):
        message = f"{label} must be seconds, or a number with ms, s, m or h, not {text[:80]!r}"
        raise BusError("invalid_input", message)
    return int(number) * factor


def _is_number(text: str, most: int) -> bool:
    """Plain digits, and so few that neither SQLite nor a clock overflows."""
    return text.isascii() and text.isdigit() and len(text) <= most


def _is_text(text: str) -> bool:
    """Whether it can be written as UTF-8; bytes of the command line that can't be are surrogates here."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _help_hint(command: Command) -> str:
    """Where to read on."""
    return f"tt {command.title} --help"
