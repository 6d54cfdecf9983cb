"""A light reader for well-formed calls of hot verbs, which must not pay for click.

It reads exactly what it knows from `tt.table`; whatever it doesn't, it leaves to click by
returning None, so that errors, help and everything rare have one author.
"""

from __future__ import annotations

from tt import grammar, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read(argv: list[str]) -> tuple[grammar.Command, dict[str, Any]] | None:
    """The command and its raw call, or None: click shall read it. Checks no values."""
    command, rest = _command(argv)
    if command is None or not command.hot:
        return None
    raw = grammar.blank(command)
    words = _options(command, rest, raw)
    if words is None or not _arguments(command, words, raw):
        return None
    return command, raw


def _command(argv: list[str]) -> tuple[grammar.Command | None, list[str]]:
    """The command that the first one or two words name."""
    for size in (1, 2):
        command = table.find(tuple(argv[:size])) if len(argv) >= size else None
        if command is not None:
            return command, argv[size:]
    return None, []


def _options(command: grammar.Command, rest: list[str], raw: dict[str, Any]) -> list[str] | None:
    """Fill in the options; the words that are left, or None if anything is unclear."""
    known = {option.flag: option for option in grammar.options_of(command)}
    words: list[str] = []
    left = iter(rest)
    for word in left:
        if word == "--":
            words.extend(left)
        elif not word.startswith("-") or word == "-":
            words.append(word)
        elif not _option(known, word, left, raw):
            return None
    return words


def _option(known: dict[str, grammar.Option], word: str, rest: Any, raw: dict[str, Any]) -> bool:
    """Take one option, and its value; False if click must look."""
    flag, equals, value = word.partition("=")
    option = known.get(flag)
    if option is None or (option.kind == "flag" and equals):
        return False
    if option.kind == "flag":
        raw[option.name] = True
        return True
    text = value if equals else next(rest, None)
    if text is None:
        return False
    raw[option.name] = (*raw[option.name], text) if option.multiple else text
    return True


def _arguments(command: grammar.Command, words: list[str], raw: dict[str, Any]) -> bool:
    """Give the words to the arguments in order; False if one is missing or left over."""
    left = list(words)
    for argument in command.arguments:
        if argument.many:
            raw[argument.name] = tuple(left)
            left = []
        elif left:
            raw[argument.name] = left.pop(0)
        elif argument.required:
            return False
    return not left
