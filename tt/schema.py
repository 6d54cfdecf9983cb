"""The shapes of all results, as data: what `tt schema` prints and a contract test holds.

`SHAPES[command][status] = (keys it always has, keys it may have)`, beside `status` and `hint`.
Fields are added here, never renamed or taken away.
"""

from __future__ import annotations

from bus.errors import CODES, BusError
from tt import output, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Shape = tuple[str, str]

_RECEIVED = "events cursor_event_seq wake_reason"
_TURN = "room_id path turn_id lease_id lease_expires_at reason guardian_pid handoff from_agent_id"
_TURN_MORE = "earlier_handoffs open_notes repeated revoked_agent_id"
_WAITED: dict[str, Shape] = {
    "your_turn": (f"{_TURN} {_RECEIVED}", f"{_TURN_MORE} more"),
    "not_yet": (f"room_state turn_id {_RECEIVED}", "current_owner reserved_for lease_expires_at reason more"),
    "takeover_available": (f"reason current_owner {_RECEIVED}", "room_state turn_id more"),
    "closed": (_RECEIVED, "room_id path more"),
}
_DELIVERY = "delivery_transport delivery_state reason interrupt_status also_receiver deliveries"
_HANDED = (
    "room_id turn_id reserved_for event_seq no_active_waiters parked_hinted",
    f"routed_to_parked delivery_status {_DELIVERY}",
)
_SENT = ("event_seq event_id to created_at delivery_status", f"thread {_DELIVERY}")
_NOTE = ("note_id turn_id author_agent_id created_at resolved_at", "")
_RESOLVED = ("note_id resolved_at", "")
_LEFT = ("agent_id room_id path remaining_members", "kept_for")
_SETTING = ("key value default", "")
_INSTALLED = ("results failed", "python")
_LAYER = {"instructions": ("scope path state", "")}

_TASK = "state title body creator assignee holder created_at changed_at"
_MORE = f"result result_by delivery_status {_DELIVERY}"
_TICKET: Shape = (f"ticket_id {_TASK} priority thread stalled", _MORE)
_ASK: Shape = (f"ask_id {_TASK} options", _MORE)
_STATION = "station path branch"

SHAPES: dict[str, dict[str, Shape]] = {
    "whoami": {"whoami": ("agent_id kind source station person detail process_metadata", "steps refused")},
    "list": {"rooms": ("rooms", "hidden unreadable")},
    "join": {
        "joined": (
            (
                "agent_id station room_id path bus requested_path workspace_root joined_existing_room "
                "cursor_event_seq members room_state handoff_template notify_path wake_transports"
            ),
            "warning",
        )
    },
    "leave": {"left": _LEFT, "room_deleted": _LEFT},
    "wait": _WAITED,
    "try": _WAITED,
    "standby": {
        "standby_registered": (
            "agent_id room_id can_self_wake wake_transports transport generation unread",
            "fallback_reason",
        ),
    },
    "state": {"state": ("agent_id room members cursor_event_seq", "hidden")},
    "health": {
        "health": (
            (
                "agent_id path joined room_state owner you_own reserved_for lease guardian listener rewake "
                "monitor reachable unread wake wakes git next_action"
            ),
            "inbound silenced transports room",
        )
    },
    "events": {"events": ("events cursor_event_seq", "more hidden")},
    "msg send": {"sent": _SENT},
    "msg recv": {"events": ("events cursor_event_seq", "more hidden")},
    "msg reply": {"sent": _SENT},
    "kick": {
        "kicked": _LEFT,
        "room_deleted": _LEFT,
    },
    "release": {"released": _HANDED},
    "pass": {"passed": _HANDED},
    "assign": {"passed": _HANDED},
    "take": {
        "your_turn": (
            f"{_TURN} revoked_agent_id handoffs",
            f"{_TURN_MORE} interrupted {_RECEIVED}",
        )
    },
    "notes add": {"noted": _NOTE},
    "notes list": {"notes": ("room_id notes", "hidden more")},
    "notes resolve": {"resolved": _RESOLVED, "already_resolved": _RESOLVED},
    "wakes": {"wakes": ("wakes totals", "")},
    "inbox": {"inbox": ("agent_id events", "more unread cursor_event_seq")},
    "ack": {"acknowledged": ("event_seqs", ""), "already_acknowledged": ("event_seqs", "")},
    "monitor": {"monitor": ("call note", "")},
    "focus": {"focus": ("agent_id focus", "")},
    "config get": {"config": _SETTING},
    "config set": {"config": _SETTING},
    "config list": {"config": ("settings", "")},
    "schema": {"schema": ("commands", "parts error_codes")},
    "stations list": {"stations": ("topology stations", "")},
    "stations add": {
        "stations_added": ("stations topology", "warning"),
        "planned": ("stations topology seed seed_path", ""),
    },
    "stations remove": {"station_removed": (_STATION, "")},
    "stations attach": {"attach": ("station path command", "")},
    "delegate": {"delegated": _TICKET},
    "tickets list": {"tickets": ("tickets", "more")},
    **{f"tickets {verb}": {"ticket": _TICKET} for verb in ("show", "assign", "start", "return", "done", "cancel")},
    "ask": {"asked": _ASK},
    "answer": {"answered": _ASK},
    "asks list": {"asks": ("asks", "more")},
    "asks escalate": {"escalated": _ASK},
    "journal": {"journal": ("entries since", "more")},
    "board": {
        "board": ("agent_id station topology peers collisions unread tickets asks state_hash", "usage"),
        "unchanged": ("state_hash", ""),
        "delta": ("text known", ""),
    },
    "usage": {"usage": ("usage output_tokens", "")},
    "install": {"installed": _INSTALLED, "planned": _INSTALLED},
    "uninstall": {"uninstalled": _INSTALLED, "planned": _INSTALLED},
    "instructions show": {"instructions": ("harness role scope text layers", "")},
    "instructions edit": _LAYER,
    "instructions update": _LAYER,
    "instructions reset": _LAYER,
    "self-update": {"self_update": ("manager detected command version ran", "")},
}

# What results are made of.
PARTS: dict[str, Shape] = {
    "event": (
        "event_seq event_id type from to created_at",
        "from_station room turn_id thread text interrupt in_reply_to handoff reason agent_id",
    ),
    "handoff": (
        "status next_action",
        "artifacts open_questions do_not verification event_seq from_agent_id created_at",
    ),
    "artifact": ("path", "lines role note"),
    "member": ("agent_id station status observer last_seen_at", "focus"),
    "room": (
        "room_id path bus state owner reserved_for turn_id lease_expires_at updated_at",
        "members reserved_until pending_handoffs open_notes derived",
    ),
    "note": (f"{_NOTE[0]} body", ""),
    "wake": ("at agent_id route cost state event_seq seen_at error", ""),
    "station": (_STATION, "managed agents"),
    "ticket": (_TICKET[0], "result result_by"),
    "ask": (_ASK[0], "result result_by"),
    "option": ("label text", ""),
    "peer": ("agent_id station state branch changed focus", ""),
    "usage": ("agent_id agent_type samples output_tokens", ""),
    "installed": ("harness what path state", "detail text adds commands"),
    "error": ("error message", "hint"),
}


def run(args: dict[str, Any]) -> int:
    """Print the shapes of one command, or of all with their parts and the error codes."""
    words = args["words"]
    if not words:
        output.result(args, everything())
        return 0
    command = table.find(words)
    if command is None or command.title not in SHAPES:
        raise BusError("invalid_input", f"no schema for {' '.join(words)[:80]!r}", "tt schema lists all")
    output.result(args, {"status": "schema", "commands": {command.title: describe(command.title)}})
    return 0


def everything() -> dict[str, Any]:
    """The whole schema."""
    return {
        "status": "schema",
        "commands": {title: describe(title) for title in SHAPES},
        "parts": {name: _keys(shape) for name, shape in PARTS.items()},
        "error_codes": list(CODES),
    }


def describe(title: str) -> dict[str, Any]:
    """`{status: {always: [...], sometimes: [...]}}` of one command."""
    return {status: _keys(shape) for status, shape in SHAPES[title].items()}


def _keys(shape: Shape) -> dict[str, list[str]]:
    """A shape as lists."""
    always, sometimes = shape
    return {"always": always.split(), "sometimes": sometimes.split()}


def problems(title: str, result: Mapping[str, Any]) -> list[str]:
    """What a result has too little or too much of, for the contract test. Empty if it fits."""
    status = result.get("status")
    shape = SHAPES[title].get(str(status))
    if shape is None:
        return [f"{title}: no status {status!r}"]
    keys = _keys(shape)
    missing = [f"{title} {status}: {key} is missing" for key in keys["always"] if key not in result]
    known = {*keys["always"], *keys["sometimes"], "status", "hint"}
    return missing + [f"{title} {status}: {key} is unknown" for key in result if key not in known]
