"""The one place that reads the clock.

Everything else takes `now` as an argument: integer milliseconds since the epoch, UTC.
`TT_TEST_CLOCK_OFFSET` (milliseconds, may be negative) moves it, for tests of clock jumps.
"""

from __future__ import annotations

import os
import time


def _offset(text: str) -> int:
    """Milliseconds of the variable; what is no such number, or beyond a century, moves nothing."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 12 else 0


_OFFSET = _offset(os.environ.get("TT_TEST_CLOCK_OFFSET", ""))


def now() -> int:
    """Milliseconds since the epoch, UTC."""
    return time.time_ns() // 1_000_000 + _OFFSET


def monotonic() -> float:
    """Milliseconds of a clock that never jumps, for durations within one process."""
    return time.monotonic_ns() / 1_000_000


def file_now() -> float:
    """Milliseconds as file times count them; never moved by a test."""
    return time.time_ns() / 1_000_000


def iso(ms: int) -> str:
    """ISO-8601 UTC with milliseconds, as every JSON result shows times."""
    seconds, rest = divmod(ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"


def iso_or_none(ms: int | None) -> str | None:
    """The same for a time that may be missing."""
    return None if ms is None else iso(ms)


def day_start(ms: int) -> int:
    """The beginning of that UTC day, the horizon of default views."""
    return ms - ms % 86_400_000
