"""Named crash points, so that tests can kill a process exactly between two steps.

`TT_TEST_CRASH=<name>` kills the process with SIGKILL at that point; `TT_TEST_CRASH=<name>!stop`
stops it there instead (SIGSTOP), so that a test can force one interleaving and go on.
`<name>#2` means the second time that the process comes there. It stops once only.
`TT_TEST_CRASH=?<file>` does neither and notes each point that is passed, as `<pid> <name>`.
"""

from __future__ import annotations

import os

_WANTED = os.environ.get("TT_TEST_CRASH", "")

# Every point there is; a test kills at each and then looks for damage.
POINTS = (
    "before_guardian_start",
    "after_guardian_ready",
    "before_grant_commit",
    "after_grant_commit",
    "before_commit",
    "after_commit",
    "before_bell",
    "after_bell",
    "before_notify",
    "after_notify",
    "before_print",
    "after_flush",
    "after_mark",
    "after_register",
    "before_unlock",
    "before_sweep",
    "in_sweep",
    "before_migrate",
    "after_migrate",
    "before_replace",
)


_passed: list[str] = []  # how often the wanted point was reached; filled in tests only


def point(name: str) -> None:
    """Die or stop here if a test asked for it; otherwise one comparison."""
    if not _WANTED:
        return
    if _WANTED.startswith("?"):
        with open(_WANTED[1:], "a", encoding="ascii") as file:
            file.write(f"{os.getpid()} {name}\n")
        return
    wanted, _, how = _WANTED.partition("!")
    wanted, _, count = wanted.partition("#")
    if wanted != name:
        return
    _passed.append(name)
    if len(_passed) == int(count or 1):
        import signal  # never loaded outside tests

        os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)
