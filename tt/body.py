"""Bodies of messages and notes, and handoffs: read, checked, or refused before anything happens.

A body is valid UTF-8 without NUL, not empty, within its limit; it is never shortened. A handoff
has the shape of `handoff`, whatever way it came in.
"""

from __future__ import annotations

import sys

from bus import limits, quickjson
from bus.errors import BusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Args = dict[str, Any]


def message(args: Args, limit: int = limits.MESSAGE_BYTES, what: str = "message") -> str:
    """The body of a call: its words joined by a space, or stdin. `limit` in UTF-8 bytes."""
    words: tuple[str, ...] = args["body"]
    from_stdin = bool(args["stdin"])
    if from_stdin and words:
        raise BusError("invalid_body", f"give the {what} either as words or by --stdin, not both")
    text = _stdin(limit, what) if from_stdin or words == ("-",) else " ".join(words)
    return checked(text, limit, what)


def checked(text: str, limit: int, what: str) -> str:
    """The text itself if it may be a body; BusError otherwise."""
    problem = _problem(text)
    if problem:
        raise BusError("invalid_body", f"the {what} {problem}")
    if not text.strip():
        raise BusError("invalid_body", f"the {what} is empty", "give words, or --stdin")
    size = len(text.encode())
    if size > limit:
        raise _too_large(what, limit, size)
    return text


def line(text: str | None, what: str, limit: int = limits.REASON_BYTES) -> str | None:
    """A short text such as a reason: no NUL, within its limit; None stays None."""
    if text is None:
        return None
    problem = _problem(text)
    if problem:
        raise BusError("invalid_input", f"the {what} {problem}")
    size = len(text.encode())
    if size > limit:
        raise _too_large(what, limit, size)
    return text


def _problem(text: str) -> str | None:
    """What makes this no text at all."""
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    return None


def _too_large(what: str, limit: int, size: int | None) -> BusError:
    """Name the limit, and the size where it is known."""
    has = f"has {size} bytes" if size is not None else "is too long"
    text = f"the {what} {has}: at most {limit} bytes are allowed"
    hint = "put it into a file and name its path"
    return BusError("message_too_large", text, hint, limit_bytes=limit)


def _stdin_bytes(most: int) -> bytes:
    """At most `most` bytes of stdin. A closed one is empty."""
    if sys.stdin is None:
        return b""
    try:
        return sys.stdin.buffer.read(most)
    except (OSError, ValueError) as error:
        raise BusError("invalid_body", f"stdin can't be read: {error}") from error


def _stdin(limit: int, what: str) -> str:
    """The text on stdin without its last line end, which is the shell's and not the author's."""
    data = _stdin_bytes(limit + 3)
    if data.endswith(b"\n"):
        data = data[:-2] if data.endswith(b"\r\n") else data[:-1]
    if len(data) > limit:
        raise _too_large(what, limit, None)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BusError("invalid_body", f"the {what} is not valid UTF-8 (byte {error.start})") from error


# Handoffs

_FIELDS = ("status", "next_action", "artifacts", "open_questions", "do_not", "verification")
_ARTIFACT_FIELDS = ("path", "lines", "role", "note")
_RANGE = 2  # first and last line
_TEMPLATE_HINT = "give --status TEXT and --next-action TEXT, or a JSON object by --stdin"


def handoff(args: Args) -> dict[str, Any]:
    """The handoff of a call, from its options or as JSON from stdin; BusError `invalid_handoff`.

    `{status, next_action, artifacts?[{path, lines?, role?, note?}], open_questions?[], do_not?[],
    verification?}`; optional parts are there only if they say something.
    """
    by_options = args["status"] is not None or args["next_action"] is not None
    if args["stdin"] and by_options:
        raise _bad("give the handoff either by options or by --stdin, not both")
    if args["stdin"]:
        given = _json_handoff()
    else:
        given = {name: args[name] for name in ("status", "next_action") if args[name] is not None}
    shaped = shape(given)
    size = len(quickjson.dumps(shaped, ensure_ascii=False, separators=(",", ":")).encode())
    if size > limits.HANDOFF_BYTES:
        raise _bad(
            f"the handoff has {size} bytes, at most {limits.HANDOFF_BYTES} are allowed",
            limit_bytes=limits.HANDOFF_BYTES,
        )
    return shaped


def _bad(message: str, hint: str | None = None, **details: Any) -> BusError:
    """The one code for handoffs."""
    return BusError("invalid_handoff", message, hint, **details)


def _json_handoff() -> dict[str, Any]:
    """The JSON object on stdin. White space may make it longer than what counts, within reason."""
    data = _stdin_bytes(4 * limits.HANDOFF_BYTES + 1)
    if len(data) > 4 * limits.HANDOFF_BYTES:
        message = f"the handoff is too large, at most {limits.HANDOFF_BYTES} bytes are allowed"
        raise _bad(message, limit_bytes=limits.HANDOFF_BYTES)
    if not data.strip():
        raise _bad("stdin is empty", _TEMPLATE_HINT)
    try:
        import json  # only a handoff by stdin is read strictly

        given = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _bad(f"stdin is not valid UTF-8 (byte {error.start})") from error
    except RecursionError as error:
        raise _bad("the JSON is nested too deeply") from error
    except ValueError as error:
        raise _bad(f"stdin is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(given, dict):
        raise _bad("the handoff must be a JSON object", _TEMPLATE_HINT)
    return given


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that comes twice: one of its values would be lost silently."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _bad(f"{key[:80]!r} is given twice")
        found[key] = value
    return found


def _no_constant(name: str) -> None:
    """NaN and Infinity are no JSON."""
    raise _bad(f"{name} is not JSON")


def shape(given: dict[str, Any]) -> dict[str, Any]:
    """The handoff with every field checked; BusError `invalid_handoff` names the field."""
    _refuse_unknown(given, _FIELDS, "")
    shaped: dict[str, Any] = {
        "status": _text(given.get("status"), "status"),
        "next_action": _text(given.get("next_action"), "next_action"),
    }
    lists: tuple[tuple[str, Callable[[Any, str], Any]], ...] = (
        ("artifacts", _artifact),
        ("open_questions", _text),
        ("do_not", _text),
    )
    for name, one in lists:
        values = _list(given.get(name), name, one)
        if values:
            shaped[name] = values
    if given.get("verification") is not None:
        shaped["verification"] = _text(given["verification"], "verification")
    return shaped


def _refuse_unknown(given: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    """A misspelt key must not vanish."""
    for key in given:
        if key not in known:
            raise _bad(f"unknown field {where}{key[:80]!r}", "known: " + ", ".join(known), field=key[:80])


def _text(value: Any, field: str) -> str:
    """A text that says something."""
    if value is None:
        raise _bad(f"{field} is missing", _TEMPLATE_HINT, field=field)
    if not isinstance(value, str):
        raise _bad(f"{field} must be a text", field=field)
    problem = _problem(value)
    if problem:
        raise _bad(f"{field} {problem}", field=field)
    if not value.strip():
        raise _bad(f"{field} is empty", _TEMPLATE_HINT, field=field)
    return value


def _list(value: Any, field: str, one: Callable[[Any, str], Any]) -> list[Any]:
    """A list, each entry checked and named by its place."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _bad(f"{field} must be a list", field=field)
    return [one(entry, f"{field}[{place}]") for place, entry in enumerate(value)]


def _artifact(value: Any, field: str) -> dict[str, str]:
    """`{path, lines?, role?, note?}`; a plain text is the path."""
    if isinstance(value, str):
        return {"path": _text(value, field)}
    if not isinstance(value, dict):
        raise _bad(f"{field} must be a path or an object with a path", field=field)
    _refuse_unknown(value, _ARTIFACT_FIELDS, f"{field}.")
    shaped = {"path": _text(value.get("path"), f"{field}.path")}
    for name in _ARTIFACT_FIELDS[1:]:
        part = value.get(name)
        if part is None:
            continue
        if name == "lines":
            part = _lines(part)
        shaped[name] = _text(part, f"{field}.{name}")
    return shaped


def _lines(value: Any) -> Any:
    """Lines as text: `12`, and `[12, 40]` for a range, are what models write too."""
    numbers = value if isinstance(value, list) else [value]
    if 1 <= len(numbers) <= _RANGE and all(type(number) is int and 0 < number < 10**9 for number in numbers):
        return "-".join(str(number) for number in numbers)
    return value
