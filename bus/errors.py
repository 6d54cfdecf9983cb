"""Expected errors: a stable code, a message for people, details for programs, often a hint."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Every code that a command may answer with. Codes are a public contract: add, never rename.
CODES = (
    # usage, input
    "usage",
    "invalid_input",
    "invalid_body",
    "message_too_large",
    "invalid_event_type_filter",
    "invalid_turn_id",
    "invalid_cursor",
    "invalid_wait_mode",
    "invalid_standby_transport",
    "cmux_endpoint_required",
    "invalid_handoff",
    "unknown_config_key",
    # who and where
    "room_not_found",
    "room_closed",
    "not_joined",
    "unknown_member",
    "session_ended",
    "agent_id_required",
    "unknown_target",
    "unknown_recipient",
    "ambiguous_recipient",
    "recipient_unreachable",
    "station_not_found",
    "dubious_ownership",
    "bare_repository",
    # turn
    "observer_cannot_hold_turn",
    "stale_lease",
    "turn_mismatch",
    "takeover_not_available",
    "takeover_ineligible",
    "park_requires_release",
    "duplicate_listener",
    "target_active",
    "cannot_kick_self",
    # things
    "event_not_found",
    "note_not_found",
    "unknown_ack_token",
    "foreign_ack_token",
    "ticket_not_found",
    "ask_not_found",
    "ask_answered",
    "ticket_conflict",
    # permission
    "not_permitted",
    "topology_refused",
    "delegation_refused",
    # stations
    "station_dirty",
    "station_unmerged",
    # store
    "store_busy",
    "store_unusable",
    "store_read_only",
    "store_full",
    "network_file_system",
    "schema_too_new",
    # rest
    "cli_error",
)


class BusError(Exception):
    """A refusal. Nothing was written, nobody was woken.

    `code` is one of CODES, `details` are JSON-ready fields, `hint` says what to do next.
    """

    def __init__(self, code: str, message: str, hint: str | None = None, **details: Any) -> None:
        """Keep the parts apart: text and JSON show them differently."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = details

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive pickling, since tests carry errors between processes."""
        return (_rebuild, (self.code, self.message, self.hint, self.details))


def _rebuild(code: str, message: str, hint: str | None, details: dict[str, Any]) -> BusError:
    """Make the error again on the other side of a pickle."""
    return BusError(code, message, hint, **details)
