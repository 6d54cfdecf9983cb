"""Every command as data: words, arguments, options, types, one-line help, handler.

The click tree (`tt.app`) and the light reader (`tt.quick`) are both made from this table.
Longer help with an example stands in `tt.pages`, which a hot verb never loads.
"""

from __future__ import annotations

from tt import table_setup, table_tasks
from tt.grammar import GLOBALS, Argument, Command, Option

PATH = Argument("path", "directory or file of the room; default: here", kind="path")
BODY = Argument("body", "the text; words are joined by a space, - reads stdin", many=True, kind="body")

_STDIN = Option("--stdin", "read the text from stdin, where no shell expands it")
_ALL = Option("--all", "older ones as well")
_FORCE = Option("--force", "although it is alive and active")
_OPERATOR = Option("--operator-requested", "a person asked for it")
_LIMIT = Option("--limit", "at most this many", "int", "N")
_AFTER = Option("--after", "only events after this number; marks nothing", "int", "SEQ", error="invalid_cursor")
_TURN = Option("--turn", "only if this is the turn", "int", "N", error="invalid_turn_id")
_REASON = Option("--reason", "why, for everyone to read", "text", "TEXT")
_PARK = Option("--park", "listen, but claim nothing that isn't meant for me")
_TARGET = Option("--target", "self, any, or an agent", "text", "WHO", default="self")
_INTERRUPT = Option("--interrupt", "deliver it now, into a running turn")
_NO_WAKE = Option("--no-wake", "wake nobody; it is read at the next wait, try or inbox")
_WAIT = Option("--wait", "block until there is one")
_FOLLOW = Option("--follow", "go on printing, one a line, until stopped")
_HANDOFF = (
    Option("--status", "what is done and how things stand", "body", "TEXT"),
    Option("--next-action", "what the next one should do", "body", "TEXT"),
    Option("--stdin", "read the handoff as JSON from stdin"),
    _TURN,
)

# One-line help of the words that only lead to other words.
GROUPS = {
    "msg": "Send, answer and look at messages",
    "notes": "Notes that stay with the room",
    "config": "Settings of the bus",
    **table_setup.GROUPS,
    **table_tasks.GROUPS,
}

COMMANDS = (
    Command(
        ("whoami",),
        "Who the bus takes me for",
        "tt.commands.who:whoami",
        options=(Option("--explain", "show every step of the decision"),),
        hot=True,
    ),
    Command(
        ("list",),
        "Rooms under a path, over all buses",
        "tt.commands.rooms:list_rooms",
        (Argument("path", "only rooms at or below this directory", kind="path"),),
        (_ALL,),
        hot=True,
    ),
    Command(
        ("join",),
        "Become a member of the room here",
        "tt.commands.rooms:join",
        (PATH,),
        (Option("--force-new", "make a room of its own at exactly this path"),),
        hot=True,
    ),
    Command(("leave",), "Leave the room", "tt.commands.rooms:leave", (PATH,), hot=True),
    Command(
        ("wait",),
        "Block until it is my turn or something is for me",
        "tt.commands.wait:wait",
        (PATH,),
        (
            Option("--timeout", "give up after this long", "duration", "TIME"),
            _PARK,
            Option("--claim", "take an idle room although I am alone"),
            _AFTER,
        ),
        exclusive=(("park", "claim"),),
        exclusive_error="invalid_wait_mode",
        hot=True,
    ),
    Command(
        ("try",),
        "Look once: my turn, or anything for me?",
        "tt.commands.wait:try_once",
        (PATH,),
        (_PARK, _AFTER),
        hot=True,
    ),
    Command(
        ("standby",),
        "Park, return at once, be woken for directed work",
        "tt.commands.wait:standby",
        (PATH,),
        (
            Option(
                "--wake",
                "how to wake me",
                "choice",
                "HOW",
                choices=("cmux", "manual"),
                error="invalid_standby_transport",
            ),
        ),
        hot=True,
    ),
    Command(("state",), "The room: owner, members, turn", "tt.commands.views:state", (PATH,), (_ALL,), hot=True),
    Command(
        ("health",),
        "How I stand and what to do next",
        "tt.commands.views:health",
        options=(Option("--all", "everything, as --verbose"),),
        aliases=("status",),
        hot=True,
    ),
    Command(
        ("events",),
        "What happened; marks nothing as read",
        "tt.commands.views:events",
        (PATH,),
        (
            _ALL,
            _AFTER,
            _LIMIT,
            _WAIT,
            _FOLLOW,
            Option(
                "--event",
                "only these types",
                "words",
                "TYPE,TYPE",
                multiple=True,
                error="invalid_event_type_filter",
            ),
            _TARGET,
            Option("--bus", "of all rooms of this bus"),
        ),
        exclusive=(("wait", "follow"),),
        hot=True,
    ),
    Command(
        ("msg", "send"),
        "Send a message to an agent, a station, the room or the bus",
        "tt.commands.msg:send",
        (Argument("recipient", "agent, station, name, room or bus", required=True), BODY),
        (_INTERRUPT, _NO_WAKE, Option("--thread", "the thread it belongs to", "text", "ID"), _STDIN),
        hot=True,
    ),
    Command(
        ("msg", "recv"),
        "Look at messages for audit; marks nothing as read",
        "tt.commands.msg:recv",
        options=(
            _WAIT,
            _FOLLOW,
            Option("--from", "only from this agent", "text", "AGENT"),
            _AFTER,
            _LIMIT,
            _TARGET,
        ),
        exclusive=(("wait", "follow"),),
        hot=True,
    ),
    Command(
        ("msg", "reply"),
        "Answer the sender of an event",
        "tt.commands.msg:reply",
        (Argument("event_id", "id or number of the event", required=True), BODY),
        (_INTERRUPT, _NO_WAKE, _STDIN),
        hot=True,
    ),
    Command(
        ("kick",),
        "Remove a member from the room",
        "tt.commands.rooms:kick",
        (Argument("target", "who", required=True), PATH),
        (_REASON, _FORCE),
    ),
    Command(
        ("release",),
        "Hand the turn over to whoever is next",
        "tt.commands.turn:release",
        (PATH,),
        _HANDOFF,
        hot=True,
    ),
    Command(
        ("pass",),
        "Hand the turn over, to somebody if I like",
        "tt.commands.turn:pass_on",
        (PATH,),
        (Option("--to", "to this member", "text", "TARGET"), *_HANDOFF),
        hot=True,
    ),
    Command(
        ("assign",),
        "Hand the turn to this member, or to the next one",
        "tt.commands.turn:assign",
        (Argument("target", "a member, or next", required=True), PATH),
        (*_HANDOFF, _OPERATOR),
        hot=True,
    ),
    Command(
        ("take",),
        "Take over a turn whose owner is gone or idle",
        "tt.commands.turn:take",
        (PATH,),
        (_REASON, _OPERATOR, _FORCE),
        aliases=("takeover",),
    ),
    Command(
        ("notes", "add"),
        "Leave a note in the room",
        "tt.commands.notes:add",
        (BODY,),
        (Option("--turn", "belongs to this turn", "int", "N", error="invalid_turn_id"), _STDIN),
        hot=True,
    ),
    Command(
        ("notes", "list"),
        "Notes that are not resolved",
        "tt.commands.notes:list_notes",
        options=(
            Option("--all", "resolved and older ones as well"),
            Option("--after", "only after this note", "int", "ID"),
            _LIMIT,
        ),
        hot=True,
    ),
    Command(
        ("notes", "resolve"),
        "Mark a note as settled",
        "tt.commands.notes:resolve",
        (Argument("note_id", "number of the note", required=True, kind="int"),),
        hot=True,
    ),
    Command(
        ("wakes",),
        "Who was woken, how and why",
        "tt.commands.views:wakes",
        options=(Option("--last", "how far back, at most 24h", "duration", "TIME", default="1h"),),
        hot=True,
    ),
    Command(
        ("inbox",),
        "Read my unread mail without blocking",
        "tt.commands.wait:inbox",
        options=(Option("--peek", "look only; it stays unread"), _LIMIT),
        hot=True,
    ),
    Command(
        ("ack",),
        "Say that I received what an envelope showed",
        "tt.commands.harness:ack",
        (Argument("token", "the token in the envelope's first line", required=True),),
    ),
    Command(
        ("monitor",),
        "Print one line for each wake, for a harness's monitor",
        "tt.commands.harness:monitor",
        (Argument("path", "a directory, else this one", kind="path"),),
        (Option("--print", "only show the Monitor call to arm by hand"),),
    ),
    Command(
        ("hook",),
        "Run one harness hook by hand",
        "tt.commands.harness:hook",
        (Argument("words", "its name, then --harness H", many=True),),
    ),
    Command(
        ("focus",),
        "Show or say in one line what I am working on",
        "tt.commands.settings:focus",
        (Argument("words", "the line, at most 80 characters", many=True),),
        (
            Option("--clear", "nothing in particular any more"),
            Option("--station", "somebody else's", "text", "STATION"),
        ),
        hot=True,
    ),
    Command(
        ("config", "get"),
        "Show one setting",
        "tt.commands.settings:get",
        (Argument("key", "its name", required=True),),
        hot=True,
    ),
    Command(
        ("config", "set"),
        "Change one setting",
        "tt.commands.settings:put",
        (Argument("key", "its name", required=True), Argument("value", "its value", required=True)),
        hot=True,
    ),
    Command(("config", "list"), "Show all settings", "tt.commands.settings:list_all", hot=True),
    Command(
        ("schema",),
        "The shapes of all results, for programs",
        "tt.schema:run",
        (Argument("words", "the command; all if left out", many=True),),
    ),
    Command(
        ("completion",),
        "Print a script that completes tt in a shell",
        "tt.completion:run",
        (
            Argument(
                "shell",
                "the shell",
                required=True,
                kind="choice",
                choices=("bash", "zsh", "fish"),
                error="usage",
            ),
        ),
    ),
    Command(("demo",), "See two agents work together, in 15 seconds", "tt.demo:run"),
    *table_tasks.COMMANDS,
    *table_setup.COMMANDS,
)


def expand(argv: list[str]) -> list[str]:
    """The call with what it leaves out: a list's group alone means its `list`. Done once, before both readers."""
    options = [
        *GLOBALS,
        *(option for command in COMMANDS if command.words[1:] == ("list",) for option in command.options),
    ]
    return table_tasks.expand(argv, frozenset(option.flag for option in options if option.kind != "flag"))


def find(words: tuple[str, ...]) -> Command | None:
    """The command of exactly these words, or of an alias of the last one."""
    for command in COMMANDS:
        if command.words == words or (words[:-1] == command.words[:-1] and words[-1] in command.aliases):
            return command
    return None
