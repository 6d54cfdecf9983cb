"""The only module that prints: JSON or text, streams, errors, progress; always flushed.

JSON is one compact line (indented on a terminal), streams are one object a line. Nothing here
raises for a closed or full stdout: the caller is told that the result was not printed.
"""

from __future__ import annotations

import os
import sys

from bus import quickjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TextIO

    from bus.errors import BusError
    from bus.identity import Caller

_LINE_ENDS = "\x85\u2028\u2029"  # valid inside JSON, but some readers would see two lines
MESSAGE_CHARS = 2000  # the most of an error's message that is shown


def flags(words: Sequence[str]) -> dict[str, Any]:
    """The output options of a call that nobody has parsed, for errors that come before."""
    own = list(words)
    if "--" in own:
        own = own[: own.index("--")]
    return {"json": "--json" in own, "text": "--text" in own, "agent": None}


def wants_json(args: Mapping[str, Any], caller: Caller | None = None, env: Mapping[str, str] = os.environ) -> bool:
    """`--text` forces text, `--json` JSON; else agents and TT_HARNESS_EXPORT get JSON, people text."""
    if args.get("text"):
        return False
    if args.get("json"):
        return True
    if env.get("TT_HARNESS_EXPORT", "").lower() in ("1", "true"):
        return True
    try:
        from bus import identity

        known = caller or identity.caller(env, os.getpid(), agent=args.get("agent"))
        return identity.json_wanted(env, known)
    except Exception:  # noqa: BLE001  # an error about who is calling must still be shown
        return False


def result(args: Mapping[str, Any], value: Mapping[str, Any], caller: Caller | None = None) -> bool:
    """Print the result of a command. True once it was flushed, False if stdout didn't take it."""
    if wants_json(args, caller):
        return _write(sys.stdout, _json(value, indented=_is_terminal(sys.stdout)))
    from tt import text

    paint = _paint(sys.stdout)
    return _write(sys.stdout, text.render(args, value, paint))


def item(args: Mapping[str, Any], value: Mapping[str, Any], caller: Caller | None = None) -> bool:
    """Print one object of a stream, on a line of its own. True once it was flushed."""
    if wants_json(args, caller):
        return _write(sys.stdout, _json(value))
    from tt import text

    return _write(sys.stdout, text.render_item(value, _paint(sys.stdout)))


def plain(words: str) -> bool:
    """Print text as it is: a script, a progress line of the demo."""
    return _write(sys.stdout, words)


def error(args: Mapping[str, Any], problem: BusError, caller: Caller | None = None) -> bool:
    """Show a refusal on stderr: an object in JSON mode, else one line and a hint."""
    problem.message = _bounded(problem.message)
    if wants_json(args, caller):
        shown: dict[str, Any] = {"error": problem.code, "message": problem.message}
        shown |= {key: value for key, value in problem.details.items() if key not in shown}
        if problem.hint:
            shown["hint"] = problem.hint
        return _write(sys.stderr, _json(shown))
    from tt import text

    return _write(sys.stderr, text.render_error(problem, _paint(sys.stderr)))


def _bounded(message: str) -> str:
    """A message quotes what was given, and that may be huge; what answers whole stands in the details."""
    return message if len(message) <= MESSAGE_CHARS else message[:MESSAGE_CHARS] + "…"


def note(args: Mapping[str, Any], value: Mapping[str, Any], words: str) -> bool:
    """Say something beside the result, on stderr: `value` in JSON mode, else `words`."""
    return _write(sys.stderr, _json(value) if wants_json(args) else words)


def silence() -> None:
    """Stop Python from complaining at exit about a stdout whose reader has gone."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
    except OSError:
        pass


def _json(value: Any, *, indented: bool = False) -> str:
    """One line, or several for a person who looks at JSON. Lone surrogates (file names) are escaped."""
    if indented:
        import orjson  # a person who looks has time; an agent's one line is on the hot path

        try:
            return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
        except orjson.JSONEncodeError:
            return quickjson.dumps(value, indent=2)
    shown = quickjson.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        shown.encode()
    except UnicodeEncodeError:
        shown = quickjson.dumps(value, separators=(",", ":"))
    for end in _LINE_ENDS:
        shown = shown.replace(end, f"\\u{ord(end):04x}")
    return shown


def _write(stream: TextIO | None, words: str) -> bool:
    """Write and flush, all or nothing as far as the system says. False if nobody takes it."""
    if stream is None:  # the descriptor was closed before we started
        return False
    data = (words if words.endswith("\n") else words + "\n").encode("utf-8", "backslashreplace")
    try:
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
    except (OSError, ValueError):
        if stream is sys.stdout:
            silence()
        return False
    return True


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at it."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _paint(stream: TextIO | None) -> bool:
    """Colours only on a terminal that has them, and never against NO_COLOR."""
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
