"""The console script: read the call, start its handler, let no traceback out.

Hot verbs are read by `tt.quick`, everything else by the click tree. Exit codes: 0 done, 1 error,
2 usage, 130 interrupted. What is expected arrives here as BusError; the rest is written to a
bounded log that the message names.
"""

from __future__ import annotations

import gc
import os
import sys

from bus.errors import BusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tt.grammar import Command


def start() -> None:
    """The console script. Ends the process itself: the interpreter's own tidying takes 5 ms.

    Short commands make little garbage; collecting it costs more than it frees. What blocks turns
    the collector on again.
    """
    gc.disable()
    _fill_standard()
    try:
        code = main()
    except Exception as error:  # noqa: BLE001  # showing an error failed: even then there is no traceback
        os.write(2, f"tt: unexpected {type(error).__name__}\n".encode())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # nobody reads it any more
    os._exit(code)


def _fill_standard() -> None:
    """Give no file of ours the number of a closed standard stream: what is written or inherited there would hit it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        from tt import output

        output.silence()
        return 0
    except BusError as error:
        return _refuse(words, error)
    except Exception as error:  # noqa: BLE001  # the last resort: no traceback ever reaches the user
        refused = expected(error)
        return _crash(words, error) if refused is None else _refuse(words, refused)


def _run(words: list[str]) -> int:
    """By the light reader if it knows the call exactly, else by click."""
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from hooks import entry

        return entry.main(words[1:])
    if "_TT_COMPLETE" not in os.environ:
        from tt import quick, table

        words = table.expand(words)

        call = quick.read(words)
        if call is not None:
            return invoke(*call)
    from tt import app

    return app.run(words, invoke)


def invoke(command: Command, raw: dict[str, Any]) -> int:
    """Check the values and call the handler."""
    from tt import grammar

    args = grammar.finish(command, raw)
    module, _, name = command.handler.partition(":")
    # not importlib: `__import__` with a name list does the same and loads nothing
    handler = getattr(__import__(module, fromlist=[name]), name)
    code: int = handler(args)
    return code


def expected(error: Exception) -> BusError | None:
    """What SQLite, or the system for a file of ours, refuses has a code, whichever statement it was."""
    if isinstance(error, OSError):
        return _of_our_files(error)
    if type(error).__module__ != "sqlite3":
        return None
    from bus.store import db

    return db.translate(error)  # type: ignore[arg-type]  # by its module it is a sqlite3.Error


def _of_our_files(error: OSError) -> BusError | None:
    """A lock, bell or notify file that can't be used; None where the file is no file of ours."""
    from bus import datadir

    try:
        data = datadir.data_dir(os.environ)
    except BusError:
        return None
    name = error.filename
    if not isinstance(name, str) or not os.path.normpath(name).startswith((data + os.sep, os.path.realpath(data))):
        return None
    return datadir.store_error(error, name)


def _refuse(words: list[str], error: BusError) -> int:
    """Show an expected error. Nothing has changed."""
    from tt import output

    output.error(output.flags(words), error)
    return 2 if error.code == "usage" else 1


def _crash(words: list[str], error: Exception) -> int:
    """Write down an unexpected error and name the file."""
    from tt import crashlog, output

    path = crashlog.write(words, error)
    where = f"; details are in {path}" if path else ""
    shown = f"unexpected {type(error).__name__}{where}"
    details = {"log": path} if path else {}
    output.error(output.flags(words), BusError("cli_error", shown, "tt state shows how things stand", **details))
    return 1
