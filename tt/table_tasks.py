"""The commands of stations, tickets, questions, journal and board. Part of `tt.table`."""

from __future__ import annotations

from tt.grammar import Argument, Command, Option

_STDIN = Option("--stdin", "read it from stdin, where no shell expands it")
_ALL = Option("--all", "finished and older ones as well")
_TICKET = Argument("ticket_id", "id of the ticket", required=True)
_ASK = Argument("ask_id", "id of the question", required=True)
_STATION = Argument("station", "its name", required=True)
_WORDS = Argument("words", "the text; words are joined by a space, - reads stdin", many=True, kind="body")
_SINCE = Option("--since", "how far back", "duration", "TIME", default="24h")
_STATES = ("queued", "assigned", "in_progress", "returned", "done", "cancelled")
_PRIORITIES = ("low", "normal", "high", "urgent")

GROUPS = {
    "stations": "Worktrees in which agents work side by side",
    "tickets": "Units of delegated work",
    "asks": "Questions to the expo and to people",
}

# Each of these words alone means its `list`.
LISTS = ("stations", "tickets", "asks", "notes", "config")

COMMANDS = (
    Command(("stations", "list"), "Show stations and who is there", "tt.commands.stations:list_all"),
    Command(
        ("stations", "add"),
        "Make worktrees, each on a branch of its own",
        "tt.commands.stations:add",
        options=(
            Option("--count", "how many", "int", "N", default="1"),
            Option("--print", "show what would be made, change nothing"),
        ),
    ),
    Command(
        ("stations", "remove"),
        "Remove a worktree and its branch, unless work is in it",
        "tt.commands.stations:remove",
        (_STATION,),
        (Option("--force", "although work is lost"),),
    ),
    Command(
        ("stations", "attach"), "Show how to start a session at a station", "tt.commands.stations:attach", (_STATION,)
    ),
    Command(
        ("delegate",),
        "Compose a ticket, or assign one with --to",
        "tt.commands.tasks:delegate",
        (Argument("title", "what is to be done, in one line", required=True, many=True, kind="body"),),
        (
            Option("--body", "all that one needs to know for it", "body", "TEXT"),
            Option("--to", "agent or station that does it", "text", "WHO"),
            Option("--priority", "how urgent", "choice", "P", choices=_PRIORITIES, default="normal"),
            Option("--thread", "the thread it belongs to", "text", "ID"),
            Option("--stdin", "read the body from stdin, where no shell expands it"),
        ),
    ),
    Command(
        ("tickets", "list"),
        "Show tickets that are not finished",
        "tt.commands.tasks:list_tickets",
        options=(
            Option("--mine", "only those that are for me"),
            Option("--state", "only in this state", "choice", "STATE", choices=_STATES),
            Option("--assignee", "only those of this agent or station", "text", "WHO"),
            _ALL,
        ),
        exclusive=(("mine", "assignee"),),
    ),
    Command(("tickets", "show"), "Show one ticket with all of its text", "tt.commands.tasks:show", (_TICKET,)),
    Command(
        ("tickets", "assign"),
        "Give a ticket to somebody, also again",
        "tt.commands.tasks:assign",
        (_TICKET,),
        (Option("--to", "agent or station; default: whose it was", "text", "WHO"),),
    ),
    Command(("tickets", "start"), "Begin with a ticket that is mine", "tt.commands.tasks:start", (_TICKET,)),
    Command(
        ("tickets", "return"),
        "Give a ticket back with its result",
        "tt.commands.tasks:give_back",
        (_TICKET,),
        (Option("--result", "what came of it", "body", "TEXT"), _STDIN),
    ),
    Command(("tickets", "done"), "Accept what was returned", "tt.commands.tasks:done", (_TICKET,)),
    Command(
        ("tickets", "cancel"),
        "Call a ticket off for good",
        "tt.commands.tasks:cancel",
        (_TICKET,),
        (Option("--reason", "why", "body", "TEXT"),),
    ),
    Command(
        ("ask",),
        "Ask the expo or people a question",
        "tt.commands.tasks:ask",
        (Argument("question", "the question, in one line", required=True, many=True, kind="body"),),
        (
            Option("--option", "an answer to choose; may be repeated", "text", "LABEL[:TEXT]", multiple=True),
            Option("--context", "what one needs to know to answer", "body", "TEXT"),
            Option("--to", "whom", "choice", "WHO", choices=("expo", "human"), error="unknown_recipient"),
        ),
    ),
    Command(
        ("answer",),
        "Answer a question; the first answer counts",
        "tt.commands.tasks:answer",
        (_ASK, _WORDS),
        (Option("--choose", "one of its options; may be repeated", "text", "LABEL", multiple=True), _STDIN),
    ),
    Command(
        ("asks", "list"),
        "Show open questions",
        "tt.commands.tasks:list_asks",
        options=(Option("--human", "only those that wait for people"), Option("--all", "answered ones as well")),
    ),
    Command(("asks", "escalate"), "Hand a question to people", "tt.commands.tasks:escalate", (_ASK,)),
    Command(
        ("journal",),
        "What happened: commits, handoffs, tickets, questions",
        "tt.commands.board:journal",
        options=(_SINCE, Option("--limit", "at most this many, the newest", "int", "N")),
    ),
    Command(
        ("board",),
        "Everything at one look: peers, tickets, questions",
        "tt.commands.board:board",
        options=(
            Option("--since-hash", "say only `unchanged` if this is still the state", "text", "HASH"),
            Option("--delta", "only what is new for me since the last look"),
        ),
        exclusive=(("since_hash", "delta"),),
    ),
    Command(
        ("usage",),
        "Tokens of sub-agents, per agent and type",
        "tt.commands.board:usage",
        options=(Option("--since", "how far back, at most seven days", "duration", "TIME", default="168h"),),
    ),
)


def expand(words: list[str], valued: frozenset[str]) -> list[str]:
    """A call whose group stands alone, with the `list` that it means. `valued`: options that take a value.

    Both readers of the command line read what comes out of here. Help of a group stays its help.
    """
    group = None
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-h", "--help", "--"):
            return words
        if word.startswith("-"):
            at += 2 if word in valued else 1
            continue
        if group is not None:
            return words  # the next word is there already
        if word not in LISTS:
            return words
        group = at
        at += 1
    return words if group is None else [*words[: group + 1], "list", *words[group + 1 :]]
