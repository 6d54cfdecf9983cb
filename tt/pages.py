"""The longer help of every command, with one example each, kept off the hot path.

`PAGES[words] = (text, example)`. A test compares its keys with the table.
"""

from __future__ import annotations

ROOT = (
    "Let coding agents and people work in one repository without stepping on each other: who may "
    "write now, who said what to whom. Text for people; JSON with --json, or when an agent calls."
)
ROOT_EXAMPLE = "tt join\ntt wait --json\ntt release --status 'parser done' --next-action 'write its tests'"

GROUPS = {
    "msg": "tt msg send claude 'please look at #12'",
    "notes": "tt notes list",
    "config": "tt config list",
    "instructions": "tt instructions show",
    "stations": "tt stations",
    "tickets": "tt tickets --mine",
    "asks": "tt asks",
}

_HANDOFF = (
    "The handoff says how things stand (--status) and what comes next (--next-action), or more by "
    '--stdin as JSON: {"status", "next_action", "artifacts", "open_questions", "do_not", "verification"}. '
)

PAGES = {
    "whoami": (
        "Shows the agent id that commands from here act under, and where it comes from.",
        "tt whoami --explain",
    ),
    "list": (
        "Lists rooms of every bus; with PATH only those at or below it. Empty and idle ones with --all.",
        "tt list ~/src",
    ),
    "join": (
        (
            "Makes the room if there is none, and the bus with the first room of a repository. Joining "
            "twice changes nothing. Then use tt wait."
        ),
        "tt join",
    ),
    "leave": (
        "Ends my membership. A turn that I hold goes back to the room, with what is known about it.",
        "tt leave",
    ),
    "wait": (
        (
            "Blocks without polling until the turn is mine, or there is mail, or --timeout is over. "
            'Only the status "your_turn" allows writing. Silence never ends it.'
        ),
        "tt wait --json",
    ),
    "try": (
        "Does one look of tt wait and returns at once, with a grant if there is one.",
        "tt try --json",
    ),
    "standby": (
        (
            "Stops claiming turns and says truly whether and how I can be woken for mail and "
            "assignments. What is unread now stays unread and wakes nobody."
        ),
        "tt standby",
    ),
    "state": (
        "Shows who owns the turn of the room, who is reserved, and its members.",
        "tt state",
    ),
    "health": (
        "A card of one screen: the turn, its guardian, how I can be reached, and the next action.",
        "tt health",
    ),
    "events": (
        (
            "Shows the log, oldest first: by default what concerns me, of the latest day of activity. "
            "Never marks anything as read."
        ),
        "tt events --target any --limit 20",
    ),
    "msg send": (
        (
            "The recipient is an agent id, a station, the unique name of a present agent, room, or bus. "
            "Use --stdin for text that a shell would expand."
        ),
        "tt msg send claude 'the schema is final'\ntt msg send room --stdin < note.txt",
    ),
    "msg recv": (
        "Shows messages only. It is no way to receive them: use tt wait or tt inbox.",
        "tt msg recv --from claude --after 120",
    ),
    "msg reply": (
        "Sends to whoever sent that event, in its thread.",
        "tt msg reply 42 'yes, go on'",
    ),
    "kick": (
        "A member that is alive, or may be, needs --force. Its history and its mail stay.",
        "tt kick codex:9f21ab04 --reason 'session is stuck' --force",
    ),
    "release": (
        _HANDOFF + "The fairest reachable member is next.",
        "tt release --status 'parser done' --next-action 'write its tests'",
    ),
    "pass": (
        _HANDOFF + "A lone word that is a member's id or name is the target.",
        "tt pass --to codex --status 'api ready' --next-action 'build the client'",
    ),
    "assign": (
        _HANDOFF + "The target must be a member that can be reached.",
        "tt assign codex --status 'api ready' --next-action 'build the client'",
    ),
    "take": (
        (
            "Works when the owner is gone, timed out or idle. Agents need --reason, or "
            "--operator-requested; a live and active owner needs --force too."
        ),
        "tt take --reason 'owner gone since 10:40'",
    ),
    "notes add": (
        "For what outlives the turn. Handoffs list the notes that are not resolved.",
        "tt notes add 'the fixture is slow, see tests/big'",
    ),
    "notes list": (
        "Newest last. --all shows resolved and older ones as well.",
        "tt notes list --all",
    ),
    "notes resolve": (
        "The note stays readable with --all.",
        "tt notes resolve 7",
    ),
    "wakes": (
        "Every wake of the last 24 hours at most: who, by which route, why, and what it saved.",
        "tt wakes --last 2h",
    ),
    "inbox": (
        "Prints what is unread and marks exactly that as read. --peek marks nothing.",
        "tt inbox --peek",
    ),
    "ack": (
        "Only where no hook reads prompts. It marks exactly what that envelope showed, and claims nothing.",
        "tt ack 5f0c1d2e3a4b5c6d7e8f9a0b",
    ),
    "monitor": (
        (
            "Follows my notify file until its reader goes; without a bus it waits for one. A monitor that you "
            "arm by hand expires; the plugin that tt install sets up has one that does not."
        ),
        "tt monitor --print",
    ),
    "hook": (
        "Reads the event as JSON on stdin, as a harness sends it. Whatever is wrong with it: exit 0, nothing printed.",
        "tt hook board --harness claude < payload.json",
    ),
    "focus": (
        "Others see the line beside my name. Without words it shows the present one.",
        "tt focus rewriting the parser",
    ),
    "config get": ("Unknown keys are refused.", "tt config get retention"),
    "config set": (
        "Only a person changes the settings of a bus.",
        "tt config set retention 720",
    ),
    "config list": ("Shows every key with its value and its default.", "tt config list"),
    "schema": (
        "For each status of each command the keys it always has and those it may have.",
        "tt schema wait",
    ),
    "completion": (
        "Load the script from your shell's start file.",
        'eval "$(tt completion bash)"',
    ),
    "demo": (
        "Works in a scratch repository and a scratch data directory, needs no agent, leaves nothing behind.",
        "tt demo",
    ),
    "stations list": (
        "Shows the working tree of each station, and which sessions are there. tt stations alone is the same.",
        "tt stations",
    ),
    "stations add": (
        (
            "For the expo and people. With the first one the topology becomes strict-hub: stations then write to "
            "the expo, not to each other. --print shows the permission rules that each worktree gets."
        ),
        "tt stations add --count 3",
    ),
    "stations remove": (
        "Refuses while something there is not committed, or is on no other branch, unless --force is given.",
        "tt stations remove station-2",
    ),
    "stations attach": ("Prints one line for a shell.", "tt stations attach station-1"),
    "delegate": (
        (
            "The sous composes tickets without --to, which queues them for the expo; the expo assigns them with "
            "--to; people do both; nobody else delegates."
        ),
        "tt delegate 'Parser: accept tabs' --to station-1 --body 'see #12'",
    ),
    "tickets list": (
        "Newest last. One whose worker is proven gone shows as stalled. tt tickets alone is the same.",
        "tt tickets --mine",
    ),
    "tickets show": ("Body and result are never shortened.", "tt tickets show t1a2b3c4d"),
    "tickets assign": (
        "For the expo and people. Without --to it is reopened for whoever had it.",
        "tt tickets assign t1a2b3c4d --to station-2",
    ),
    "tickets start": ("Of several agents at one station the first one gets it.", "tt tickets start t1a2b3c4d"),
    "tickets return": (
        "Wakes whoever made the ticket, who calls it done or assigns it again.",
        "tt tickets return t1a2b3c4d --result 'done on branch tt/station-1'",
    ),
    "tickets done": ("For its creator, the expo and people. It is final.", "tt tickets done t1a2b3c4d"),
    "tickets cancel": (
        "For its creator, the expo and people. It is final, and wakes whoever works on it.",
        "tt tickets cancel t1a2b3c4d --reason 'no longer needed'",
    ),
    "ask": (
        "Goes to the expo, or to people with --to human; the answer wakes me.",
        "tt ask 'Keep the old flag?' --option yes:'one more release' --option no",
    ),
    "answer": (
        "For its addressee, the expo and people. Whoever is second is told the answer that counts.",
        "tt answer q1a2b3c4d --choose yes\ntt answer q1a2b3c4d 'keep it until May'",
    ),
    "asks list": ("With their options. tt asks alone is the same.", "tt asks --human"),
    "asks escalate": ("It then waits for people: they see it in tt asks --human.", "tt asks escalate q1a2b3c4d"),
    "journal": ("Of the whole bus, oldest first.", "tt journal --since 8h"),
    "board": (
        (
            "Shows peers, collisions, unread mail, tickets and questions, and a hash of what counts. With "
            "--since-hash one line says that nothing has moved. --delta marks what it shows as received."
        ),
        "tt board --since-hash 5f0c1d2e3a4b5c6d",
    ),
    "usage": ("Samples of seven days at most, the most expensive first.", "tt usage --since 24h"),
    "install": (
        (
            "Writes hooks, plugin and skill for harnesses that are on this machine, and skips the others. Only "
            "entries of ours are touched; twice is once. --print shows everything and changes nothing."
        ),
        "tt install claude codex\ntt install --all --print",
    ),
    "uninstall": (
        (
            "Restores what was there. A single harness leaves the skill that several share: "
            "--shared, or agents, removes that."
        ),
        "tt uninstall --all",
    ),
    "instructions show": (
        (
            "Bundled, user's and project's instructions in one, for the harness that calls; the section of "
            "its role is last."
        ),
        "tt instructions show --harness codex",
    ),
    "instructions edit": (
        (
            "The file starts as a copy of the layer below; sections that are left out fall through to it. "
            "Where there is no terminal its path is printed instead."
        ),
        "tt instructions edit --project",
    ),
    "instructions update": (
        "A file that nobody edited follows by itself; one that was edited is kept unless --replace is given.",
        "tt instructions update --user",
    ),
    "instructions reset": (
        "The layers below are in force again.",
        "tt instructions reset --project",
    ),
    "self-update": (
        "Finds out whether pipx, uv or pip installed it. A checkout is left to git pull.",
        "tt self-update --print",
    ),
}
