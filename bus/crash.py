"""Named crash points, so that tests can kill a process exactly between two steps.

`TT_TEST_CRASH=<name>` kills the process with SIGKILL at that point; `TT_TEST_CRASH=<name>!stop`
stops it there instead (SIGSTOP), so that a test can force one interleaving and go on.
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


def point(name: str) -> None:
    """Die or stop here if a test asked for it; otherwise one comparison."""
    if not _WANTED:
        return
    wanted, _, how = _WANTED.partition("!")
    if wanted == name:
        import signal  # never loaded outside tests

        os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)
