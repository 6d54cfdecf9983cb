"""JSON by the interpreter's own C scanner and encoder, without the package around them.

`json` loads `re` and with it `enum` and `functools`: 9 ms, nearly half of what a command may
take. Here is only what needs none of that; whatever is unusual (options, errors, a Python
without the C parts) goes to `json`, so that every answer and every exception is the same.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    make_scanner: Any
    make_encoder: Any
    encode_basestring: Any
    encode_basestring_ascii: Any
else:
    try:
        from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:  # another Python
        make_scanner = make_encoder = None

_BLANK = " \t\n\r"  # what JSON takes for white space, and nothing else


class _Plain:
    """The settings of `json.loads` without options, as the scanner reads them."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__


_scan = make_scanner(_Plain) if make_scanner is not None else None


def loads(text: str | bytes) -> Any:
    """The value of a text. Raises what `json.loads` raises: a ValueError."""
    if _scan is not None and isinstance(text, str):
        bare = text.strip(_BLANK)
        try:
            value, end = _scan(bare, 0)
        except (StopIteration, ValueError):
            value, end = None, -1
        if end == len(bare):
            return value
    import json  # it says what is wrong, and where

    return json.loads(text)


def dumps(
    value: object,
    *,
    ensure_ascii: bool = True,
    separators: tuple[str, str] = (", ", ": "),
    sort_keys: bool = False,
    indent: int | None = None,
) -> str:
    """The text of a value. Raises what `json.dumps` raises."""
    if make_encoder is None or indent is not None:
        import json  # an indented text is for people, who have time

        return json.dumps(value, ensure_ascii=ensure_ascii, separators=separators, sort_keys=sort_keys, indent=indent)
    text = encode_basestring_ascii if ensure_ascii else encode_basestring
    between, colon = separators
    encode = make_encoder({}, _refuse, text, None, colon, between, sort_keys, False, True)
    return "".join(encode(value, 0))


def _refuse(value: object) -> object:
    """What JSON does not know."""
    message = f"Object of type {type(value).__name__} is not JSON serializable"
    raise TypeError(message)
