"""Words in, words out: the command `tt`.

Reads the command line, calls one operation of `bus` or `monitor`, prints its result. Holds no
rule of the bus itself, no SQL and no clock of its own.
"""

from __future__ import annotations

__version__ = "0.1.0"
