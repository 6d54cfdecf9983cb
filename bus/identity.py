"""Who is calling: a name for the session, its process, and whether it is a person.

Names come from an option, from variables that harnesses set, or from the processes above us;
variables are inherited, so the nearest harness process outweighs them. A name never gives a
right: a caller is a person only if neither its variables nor its ancestors show a harness.
"""

from __future__ import annotations

import os

from bus import digest, ids, markers, process
from bus.errors import BusError
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bus.process import Proc


class Caller(Record):
    """One caller. `agent_id` is what its environment gives; a bound session may say otherwise.

    `verified` is about the anchor: the harness named its own process. `session_key` beginning
    with `harness:` is a verified session, anything else is provisional. `person` is the right,
    whatever `kind` the chosen name has. `steps` are (rule, finding), for `whoami --explain`.
    """

    agent_id: str
    kind: str
    harness: str | None
    name: str
    source: str
    anchor: str | None
    verified: bool
    session_key: str
    person: bool
    shared_daemon: bool
    steps: list[tuple[str, str]]


_VERIFIED = "harness:"
_NAME = "TT_HARNESS_AGENT_ID"
_GENERIC = "TT_HARNESS_EXPORT"
_KEY_CHARS = 200  # a longer session id is stored as its hash
_LOG_BYTES = 256 * 1024  # read from the end of Grok's session log


def caller(
    env: Mapping[str, str],
    pid: int,
    *,
    agent: str | None = None,
    procs: list[Proc] | None = None,
    harness: str | None = None,
    session_id: str | None = None,
    data: str | None = None,
) -> Caller:
    """Who runs the process `pid` (our own) with `env`; BusError `invalid_input` for a bad name.

    `agent` is `--agent`. Hooks give `harness` (`--harness`) and `session_id` from their input;
    `data` is the data directory, where Grok's sessions are recorded. `procs` replaces the real
    ancestors, nearest first. Ancestors are read only up to the nearest harness.
    """
    above = _Ancestry(pid, process.ancestors(pid) if procs is None else procs, env, harness)
    return _Search(env, above, session_id, data).caller(agent)


def json_wanted(env: Mapping[str, str], caller: Caller) -> bool:
    """Whether output is for a program: a harness calls, or `TT_HARNESS_EXPORT` is 1 or true."""
    return caller.kind == "harness" or not caller.person or markers.is_on(env.get(_GENERIC))


def trusted(env: Mapping[str, str], caller: Caller) -> Mapping[str, str]:
    """The environment without what a shared daemon inherited from the session that started it."""
    return markers.trusted(env) if caller.shared_daemon else env


def user_name(env: Mapping[str, str]) -> str:
    """The user, as it may stand in an id; what the grammar forbids is replaced, and told apart."""
    name = env.get("USER") or env.get("LOGNAME") or env.get("USERNAME") or _account()
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._@+-") else "_" for char in name)[:40]
    return plain if plain == name else f"{plain}-{_digest(name)[:4]}"


def grok_session(data: str, anchor: str) -> str | None:
    """The session last recorded for exactly this process in `<data>/grok-sessions.jsonl`.

    One JSON object a line with `anchor` and `session_id`. A workspace is never enough: a
    restarted Grok would get the identity of the one before.
    """
    import json  # only for Grok without its variables

    for line in reversed(_tail(os.path.join(data, "grok-sessions.jsonl"))):
        if anchor.encode() not in line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:  # a line torn by a crash
            continue
        session = entry.get("session_id") if isinstance(entry, dict) and entry.get("anchor") == anchor else None
        if isinstance(session, str) and session:
            return session
    return None


class _Ancestry:
    """The processes above us, read one by one and only as far as a question needs.

    `nearest` is the nearest harness, `root` its place in `above` (-1: none).
    """

    def __init__(self, pid: int, procs: Iterable[Proc], env: Mapping[str, str], told: str | None) -> None:
        """Read up to the nearest harness; up to the one that a hook was `told`, if it was."""
        self.pid, self.env, self.told = pid, env, told
        self.above: list[Proc] = []
        self._unread: Iterator[Proc] = iter(procs)
        self.shown = markers.shown(env)
        self.named = markers.named_pids(env, [told, *self.shown])
        self.nearest: str | None = None
        self.root = -1
        self.daemon = False
        self._find()

    def at(self, index: int) -> Proc | None:
        """The ancestor of that place, 0 is the parent."""
        while len(self.above) <= index:
            proc = next(self._unread, None)
            if proc is None:
                return None
            self.above.append(proc)
        return self.above[index]

    def which(self, proc: Proc) -> str | None:
        """The harness that this ancestor is: a pid that a harness named counts, whatever its name."""
        return self.named.get(proc.pid) or markers.harness_of(proc)

    def _find(self) -> None:
        """Set `nearest`, `root` and `daemon`."""
        index = 0
        while (proc := self.at(index)) is not None:
            found = self.which(proc)
            if found and self.told in (None, found):
                self.nearest, self.root = found, self._climb(index, found)
                # Only Codex runs sessions in a process that outlives them.
                chain = self.above[index : self.root + 1]
                self.daemon = found == "codex" and any("app-server" in one.argv[1:] for one in chain)
                return
            index += 1

    def _climb(self, index: int, harness: str) -> int:
        """The outermost of directly nested processes of one harness: a starter and what it started.

        Only the starter lasts, the inner one may be replaced between turns. A pid that the
        harness named ends the climb.
        """
        while self.above[index].pid not in self.named:
            outer = self.at(index + 1)
            if outer is None or self.which(outer) != harness:
                break
            index += 1
        return index


class _Search:
    """One look at environment and ancestry, with a step noted for every rule."""

    def __init__(self, env: Mapping[str, str], above: _Ancestry, session_id: str | None, data: str | None) -> None:
        """Decide which harness it is."""
        self.ancestry = above
        self.given = env
        self.env = markers.trusted(env) if above.daemon else env
        self.shown = markers.shown(self.env) if above.daemon else above.shown
        self.session_id, self.data = session_id, data
        self.root = above.above[above.root] if above.root >= 0 else None
        self.harness, self.source = self._harness()

    def _harness(self) -> tuple[str | None, str]:
        """The harness and the rule that found it."""
        above = self.ancestry
        if above.told:
            return above.told, "--harness"
        first = next(iter(self.shown), None)
        if first is not None:
            harness = above.nearest or first
            return harness, self.shown.get(harness, "ancestry")
        if above.nearest in ("grok", "antigravity"):
            return above.nearest, "ancestry"
        if markers.is_on(self.env.get(_GENERIC)):
            kind = above.nearest or self._generic()
            if kind:
                return kind, _GENERIC
        return None, "human"

    def _generic(self) -> str | None:
        """A harness that nobody knows: the nearest program that is no shell, tool or terminal."""
        for proc in self.ancestry.above:
            kind = markers.generic(proc)
            if kind:
                self.root = proc
                return kind
        return None

    def _anchor(self) -> tuple[str | None, bool]:
        """The anchor, and whether the harness named this process itself.

        Of a shared daemon it is never that: the process says nothing about the session.
        """
        above = self.ancestry
        if self.root is not None:
            told = above.told is not None  # a hook: the harness started it
            verified = self.harness is not None and (told or above.named.get(self.root.pid) == self.harness)
            return process.join_anchor(self.root.pid, self.root.start), verified and not above.daemon
        if self.harness is None:
            return self._shell(), False
        named = (self._outside(pid) for pid, harness in above.named.items() if harness == self.harness)
        found = next(filter(None, named), None)
        if found is None and above.told:
            found = self._shell_free()
            return found, False
        return found, found is not None

    def _outside(self, pid: int) -> str | None:
        """The anchor of a named process that is no ancestor: we were put into the background.

        It must be older than we are. A sandbox has pids of its own, where the number may belong
        to anything, and the end of a stranger must not pass for the death of the harness.
        """
        proc, own = process.look(pid), process.look(self.ancestry.pid)
        if proc is None or not (markers.harness_of(proc) == self.harness or _older(proc, own)):
            return None
        return process.join_anchor(pid, proc.start)

    def _shell_free(self) -> str | None:
        """A hook's parent, past the shell that runs the hook's line: the harness under an unknown name."""
        proc = next((proc for proc in self.ancestry.above if not markers.is_shell(proc)), None)
        return process.join_anchor(proc.pid, proc.start) if proc else None

    def _shell(self) -> str | None:
        """A person's anchor: the leader of the session (the terminal's shell), else the nearest shell.

        The parent is often a script or a `make`, which ends with the command.
        """
        procs = self.ancestry.above
        leaders = [proc for proc in procs if proc.pid == procs[0].session]
        shells = [proc for proc in procs if markers.is_shell(proc)]
        proc = next(iter(leaders or shells or procs), None)
        return process.join_anchor(proc.pid, proc.start) if proc else None

    def _session(self, anchor: str | None) -> str:
        """The session key: a verified session, else the process, else the terminal, else the user."""
        session = self.session_id or self._named_session() or self._recorded(anchor)
        if session:
            return _VERIFIED + _short(session)
        if self.harness and anchor:
            return "pid:{1}@{2}".format(*anchor.split("/"))
        for name in markers.TERMINALS:
            value = self.env.get(name)
            if value:  # tmux numbers its panes anew in each server
                server = "@" + self.env.get("TMUX", "") if name == "TMUX_PANE" else ""
                return "term:" + _short(f"{name}={value}{server}")
        return "userhost"

    def _named_session(self) -> str | None:
        """The session id in the environment, of this harness only: others are inherited."""
        marker = markers.BY_HARNESS.get(self.harness or "")
        names = marker.sessions if marker else ()
        return next((self.env[name] for name in names if self.env.get(name)), None)

    def _recorded(self, anchor: str | None) -> str | None:
        """The session that Grok's hook recorded for this process."""
        return grok_session(self.data, anchor) if self.harness == "grok" and self.data and anchor else None

    def caller(self, agent: str | None) -> Caller:
        """Put everything together; a chosen name changes the name alone."""
        anchor, verified = self._anchor()
        key = self._session(anchor)
        chosen, by = self._chosen(agent)
        agent_id = chosen or self._agent_id(key)
        if chosen and (by == "flag" or chosen.partition(":")[0] != self.harness):
            key = f"name:{chosen}"  # two names in one terminal are two agents, and neither is its session
        kind, name = _kind_and_name(agent_id)
        person = self._is_person()
        harness = self.harness or self.ancestry.nearest or (name if kind == "harness" else None)
        steps = self._steps(agent, key)
        steps += [
            ("anchor", f"{anchor or 'none'}, {'verified' if verified else 'inferred'}"),
            ("rights", "a person" if person else "an agent: its variables or ancestors show a harness"),
            ("result", f"{agent_id} by {by or self.source}"),
        ]
        daemon = self.ancestry.daemon
        return Caller(agent_id, kind, harness, name, by or self.source, anchor, verified, key, person, daemon, steps)

    def _chosen(self, agent: str | None) -> tuple[str | None, str]:
        """A name that was given, checked, and the rule that gave it."""
        if agent is not None:
            return ids.check_agent_id(agent), "flag"
        name = self.env.get(_NAME)
        if not name:
            return None, ""
        try:
            return ids.check_agent_id(name), _NAME
        except BusError as error:
            raise BusError(error.code, f"{_NAME}: {error.message}", error.hint, **error.details) from None

    def _agent_id(self, key: str) -> str:
        """The id of the session: stable while it lasts, and never the raw session id.

        A verified session keeps it over a reboot and inside a sandbox with pids of its own; a
        process or a terminal means something within one boot only.
        """
        if not self.harness:
            return "human:" + user_name(self.env)
        where = process.host() if key.startswith(("pid:", "term:")) else process.machine()
        return f"{self.harness}:{_digest(self.harness, where, key, _account_number())[:8]}"

    def _is_person(self) -> bool:
        """Neither variables nor ancestors show a harness, whatever name was chosen."""
        above = self.ancestry
        return not (self.harness or above.nearest or above.shown or markers.traces(self.given))

    def _steps(self, agent: str | None, key: str) -> list[tuple[str, str]]:
        """Every rule with what it found; never a raw session id."""
        above = self.ancestry
        ignored = "not set" if not self.given.get(_NAME) else "ignored: a shared daemon inherited it"
        shown = ", ".join(f"{name} ({by})" for name, by in above.shown.items())
        near = f"{above.nearest}, process {above.above[above.root].pid}" if above.nearest else "no harness"
        traces = ", ".join(markers.traces(self.given))
        steps = [
            ("--agent", agent or "not given"),
            (_NAME, self.env.get(_NAME) or ignored),
            ("--harness", above.told or "not given"),
            ("markers", shown or "none"),
            ("ancestry", near),
            ("harness", f"{self.harness or 'none'} by {self.source}"),
            ("traces", traces or "none"),
            (
                "session",
                key.partition(":")[0] + (", verified" if key.startswith(_VERIFIED) else ", provisional"),
            ),
        ]
        if above.daemon:
            steps.append(("shared daemon", "its terminal and TT_ variables are not trusted"))
        return steps


def _older(proc: Proc, own: Proc | None) -> bool:
    """Whether the process started before us, or in the same tick."""
    starts = [one.start.lstrip("~") for one in (proc, own) if one is not None]
    return len(starts) == 2 and all(map(str.isdigit, starts)) and int(starts[0]) <= int(starts[1])


def _kind_and_name(agent_id: str) -> tuple[str, str]:
    """The kind of agent that an id says, and its display name: the harness or the user."""
    kind, _, rest = agent_id.partition(":")
    if kind != "human":
        return "harness", kind
    user, _, more = rest.partition(":")
    return ("console" if more.startswith("chat:") else "person"), user


def _short(text: str) -> str:
    """The text for a key; its hash if it is long or holds what no key should."""
    return text if len(text) <= _KEY_CHARS and text.isprintable() else _digest(text)


def _digest(*parts: str) -> str:
    """A hash of the parts, hex; variables may hold bytes that are no text."""
    return digest.digest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _account_number() -> str:
    """The user's number, which no variable changes; a name where there are no numbers."""
    return str(os.getuid()) if hasattr(os, "getuid") else user_name(os.environ)


def _account() -> str:
    """The user's name from the account data, for environments that name nobody."""
    if not hasattr(os, "getuid"):
        return "user"
    import pwd  # rare, and not on Windows

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container with a number and no account
        return f"uid{os.getuid()}"


def _tail(path: str) -> list[bytes]:
    """The last lines of a log, of a bounded part of it; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            return file.read().splitlines()
    except OSError:
        return []
