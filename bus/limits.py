"""Every duration, size and count of the rules, with unit and meaning, in one table.

Durations are milliseconds, sizes are UTF-8 bytes. A test may set any of them with
`TT_TEST_<NAME>=<integer>` in the environment of the process that is to use it.
"""

from __future__ import annotations

import os

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def _value(name: str, default: int) -> int:
    """The default, unless a test has set the name in the environment."""
    text = os.environ.get("TT_TEST_" + name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else default


# Turns
LEASE = _value("LEASE", 45 * MINUTE)  # write authority, renewed by the guardian
GUARDIAN_BEAT = _value("GUARDIAN_BEAT", 5 * MINUTE)  # time between two renewals
GUARDIAN_READY = _value("GUARDIAN_READY", 2 * SECOND)  # no READY by then: killed, nothing changes
GUARDIAN_ADOPT = _value("GUARDIAN_ADOPT", 2 * SECOND)  # others look again while one waiter starts a new guardian
GONE_GRACE = _value("GONE_GRACE", 10 * SECOND)  # verified anchor gone and silent this long: surrendered
GONE_GRACE_INFERRED = _value("GONE_GRACE_INFERRED", 10 * MINUTE)  # the same for an inferred anchor
OWNER_IDLE = _value("OWNER_IDLE", 30 * MINUTE)  # alive, but no command and no hook: shown as owner_idle
RESERVATION = _value("RESERVATION", 20 * MINUTE)  # after release, pass, assign
FAIRNESS_GRACE = _value("FAIRNESS_GRACE", 10 * SECOND)  # others defer to a known fairer candidate
TAKE_BACK_COOLDOWN = _value("TAKE_BACK_COOLDOWN", 60 * SECOND)  # prior owner waits while others are there
TAKEOVER_OFFER = _value("TAKEOVER_OFFER", 60 * SECOND)  # between the fairest waiter and the next one

INTERRUPT_EXPIRY = _value("INTERRUPT_EXPIRY", 60 * SECOND)  # an interrupt not dispatched by then is one no more

# Presence and repair
PRESENCE = _value("PRESENCE", 4 * HOUR)  # an agent counts as recently present
BETWEEN_WAITS = _value("BETWEEN_WAITS", 2 * MINUTE)  # gave a command this recently: perhaps between two waits
LAST_SEEN = _value("LAST_SEEN", MINUTE)  # a read refreshes last_seen at most this often
OPEN_TURN = _value("OPEN_TURN", 10 * MINUTE)  # an open-turn mark without any hook counts as closed
ENDED_MEMBER = _value("ENDED_MEMBER", HOUR)  # process proven gone and silent: removed
IDLE_ROOM = _value("IDLE_ROOM", 7 * DAY)  # no activity and nobody alive: archived; 0 turns it off
UNSEEN_WAKE = _value("UNSEEN_WAKE", 5 * MINUTE)  # closed by newer waking mail; an unseen claim goes back
REOFFER = _value("REOFFER", 60 * SECOND)  # a hook's delivery that nobody acknowledged
USAGE = _value("USAGE", 7 * DAY)  # samples of what sub-agents cost
SWEEP = _value("SWEEP", SECOND)  # at most one whole sweep per bus in this time
WAKE_LOG = _value("WAKE_LOG", DAY)  # wake rows are pruned after this
FALLBACK_POLL = _value("FALLBACK_POLL", SECOND)  # only where file events cannot be trusted

# The store
BUSY = _value("BUSY", 10 * SECOND)  # a verb waits this long for a foreign writer
BUSY_HOOK = _value("BUSY_HOOK", 250)  # a hook gives up after this, silently

# Sizes
MESSAGE_BYTES = _value("MESSAGE_BYTES", 16 * 1024)
NOTE_BYTES = _value("NOTE_BYTES", 16 * 1024)
HANDOFF_BYTES = _value("HANDOFF_BYTES", 64 * 1024)
ENVELOPE_BYTES = _value("ENVELOPE_BYTES", 24 * 1024)
ENVELOPE_EVENTS = _value("ENVELOPE_EVENTS", 32)
HOOK_BYTES = _value("HOOK_BYTES", 8000)  # what a hook puts before a model
RESULT_BYTES = _value("RESULT_BYTES", 1024 * 1024)  # one wait, try or inbox
RESULT_EVENTS = _value("RESULT_EVENTS", 500)
NOTIFY_BYTES = _value("NOTIFY_BYTES", 480)  # one line of a notify file
NOTIFY_FILE = _value("NOTIFY_FILE", 256 * 1024)  # a monitor that finds more starts a new file
FOCUS_CHARS = _value("FOCUS_CHARS", 80)
REASON_BYTES = _value("REASON_BYTES", 2 * 1024)  # the reason of a take or a kick
VIEW_EVENTS = _value("VIEW_EVENTS", 50)
VIEW_NOTES = _value("VIEW_NOTES", 50)
VIEW_MOST = _value("VIEW_MOST", 10_000)  # the largest --limit
SWEEP_BOXES = _value("SWEEP_BOXES", 500)  # boxes served by one sweep
