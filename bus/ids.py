"""Agent ids and station names: one strict grammar, and file names that cannot leave their directory.

Whatever comes from outside (an option, a variable, a hook's input) passes `check_agent_id` or
`check_station` before it is stored or becomes part of a path. `file_name` is a bijection: two ids
never share a file, not even where the file system ignores case.
"""

from __future__ import annotations

import os

from bus.errors import BusError

# Words with a meaning of their own as a recipient; no name may be one of them.
RESERVED = frozenset(("room", "bus", "human", "next", "all", "everyone", "self", "any", "expo", "sous"))
# Two of them are stations all the same: the words mean exactly these.
_STATION_ROLES = frozenset(("expo", "sous"))

AGENT_CHARS = 96  # most characters of an agent id
STATION_CHARS = 64  # most characters of a station name
FILE_NAME_BYTES = 240  # of the 255 that file systems give, so that `.notify` still fits

_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdef")
_KIND = _LOWER | _DIGITS | {"-"}
_REST = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ") | _DIGITS | frozenset("._@+-:")
_STATION = _LOWER | _DIGITS | frozenset("._-")
_PLAIN = _STATION  # what a file name shows as it is
_EMPTY = "="  # the file name of "", which would otherwise name the directory itself

_AGENT_HINT = "An agent id looks like claude:1a2b3c4d or human:ann."
_STATION_HINT = "A station looks like expo, sous or station-2: lower case letters, digits, dot, underscore, hyphen."


def is_kind(text: str) -> bool:
    """Whether the text can stand before the colon of an agent id."""
    return text[:1] in _LOWER and set(text) <= _KIND if text else False


def check_agent_id(text: str) -> str:
    """The same text, if it is `<kind>:<rest>` by the grammar; else BusError `invalid_input`.

    Also refused: an id whose file name would be too long for the file system, since a failure
    at the first bell would come after the commit.
    """
    kind, colon, rest = text.partition(":")
    if not (colon and rest and len(text) <= AGENT_CHARS and is_kind(kind) and set(rest) <= _REST):
        raise _invalid("agent_id", text, _AGENT_HINT)
    if len(file_name(text)) > FILE_NAME_BYTES:
        raise _invalid("agent_id", text, "Use fewer capital letters: each takes three bytes in a file name.")
    return text


def check_station(text: str) -> str:
    """The same text, if it can name a station; else BusError `invalid_input`.

    Reserved words are refused, but for `expo` and `sous`, which are stations.
    """
    first = text[:1]
    if not (first in _LOWER or first in _DIGITS) or not first or len(text) > STATION_CHARS or set(text) - _STATION:
        raise _invalid("station", text, _STATION_HINT)
    if text in RESERVED and text not in _STATION_ROLES:
        raise _invalid("station", text, "This word has another meaning as a recipient.")
    return text


def file_name(text: str) -> str:
    """A file name for an id: only `[a-z0-9._-]` and `=XX`, never empty, `.`, `..` or hidden.

    Every text has exactly one name and every name one text, so the id can be read back.
    """
    if not text:
        return _EMPTY
    shown = "".join(char if char in _PLAIN else _escaped(char) for char in text)
    return _escaped(".") + shown[1:] if shown[0] == "." else shown


def from_file_name(name: str) -> str:
    """The id behind a file name; BusError `invalid_input` for a name that `file_name` never gives.

    Other spellings of an escape are refused, so that a foreign file cannot pass for an agent's.
    """
    try:
        text = _unescaped(name)
    except ValueError:
        raise _invalid("file_name", name, None) from None
    if file_name(text) != name:
        raise _invalid("file_name", name, None)
    return text


def new_id(prefix: str, n_bytes: int = 8) -> str:
    """The prefix and `n_bytes` of randomness from the system as lower case hex."""
    return prefix + os.urandom(n_bytes).hex()


def _escaped(char: str) -> str:
    """One character as `=XX` per byte; lone surrogates too, since paths may bring them."""
    return "".join(f"={byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))


def _unescaped(name: str) -> str:
    """The text of an escaped name; ValueError where an escape is cut or is no UTF-8."""
    if name == _EMPTY:
        return ""
    head, *escapes = name.split("=")
    raw = bytearray(head.encode())
    for part in escapes:
        digits = part[:2]
        if len(digits) != 2 or not set(digits) <= _HEX:  # two hex digits a byte
            raise ValueError(name)
        raw.append(int(digits, 16))
        raw += part[2:].encode()
    return raw.decode("utf-8", "surrogatepass")


def _invalid(field: str, text: str, hint: str | None) -> BusError:
    """The refusal, with what was given cut short: it may be huge and goes into a message."""
    short = text if len(text) <= AGENT_CHARS else text[:AGENT_CHARS] + "…"
    label = field.replace("_", " ")
    return BusError("invalid_input", f"Not a valid {label}: {short!a}", hint, field=field)
