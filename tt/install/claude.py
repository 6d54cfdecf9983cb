"""Claude Code: a local plugin, or entries in its settings where plugins don't work. Never both.

The plugin is generated below our data directory, which is a marketplace of one, and installed by
the client's own commands. Those rewrite the settings file in their own style; where they
changed nothing but what they had to, we put the user's style back.
"""

from __future__ import annotations

import json
import os
import re

from tt.install import claude_plugin, edit, hooksfile, registrations, skill, specs, work
from tt.install.hooksfile import Memory, Wanted
from tt.install.jsontext import Malformed
from tt.install.work import Changed, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tt.install.work import Work

OLDEST = (2, 1, 224)  # the inbox, and plugins as we use them
NAME = claude_plugin.ID
_BY_CLIENT = (("extraKnownMarketplaces", claude_plugin.NAME), ("enabledPlugins", NAME))
_INBOUND = ("crossSessionInbound",)
# A client that we start is nobody's session, and shall neither update itself nor phone home.
_OURS = ("CLAUDECODE", "CLAUDE_PID", "AI_AGENT", "CMUX_CLAUDE_PID")
_SWITCHES = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


class Client:
    """The client's own commands, and its files as far as they say what is installed."""

    def __init__(self, run: Work) -> None:
        """Nothing is started yet."""
        self.run = run
        self.root = specs.spec("claude").directory(run.env, run.home)
        self.settings = os.path.join(self.root, "settings.json")
        self.program = run.which("claude")
        env = {key: value for key, value in run.env.items() if key not in _OURS and not key.startswith("CLAUDE_CODE_")}
        self.env = {**env, **_SWITCHES}

    def call(self, *words: str) -> tuple[int, str]:
        """Run `claude WORDS`."""
        if self.program is None:
            return -1, "claude is not on PATH"
        return self.run.run([self.program, *words], self.env)

    def version(self) -> tuple[int, ...] | None:
        """Its version, None if it says none."""
        code, said = self.call("--version")
        found = re.search(r"(\d+)\.(\d+)\.(\d+)", said) if code == 0 else None
        return tuple(int(part) for part in found.groups()) if found else None

    def installed(self) -> str | None:
        """The version of our plugin that is installed for the user, by the client's own record."""
        there, entries = hooksfile.value_at(self._stored("installed_plugins.json"), ("plugins", NAME))
        found = entries if there and isinstance(entries, list) else []
        users = [entry for entry in found if isinstance(entry, dict) and entry.get("scope") == "user"]
        return str(users[0].get("version")) if users else None

    def marketplace(self) -> str | None:
        """The directory that the client takes for our marketplace."""
        path = (claude_plugin.NAME, "source", "path")
        there, folder = hooksfile.value_at(self._stored("known_marketplaces.json"), path)
        return str(folder) if there else None

    def _stored(self, name: str) -> dict[str, Any]:
        """One of its records; empty if it is missing or unreadable."""
        try:
            with open(os.path.join(self.root, "plugins", name), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def install(run: Work) -> None:
    """By the plugin if the client can, else into its settings."""
    client = Client(run)
    chosen = run.managed.choice("claude")
    chosen["guard"] = chosen.get("guard", True) and not run.options.no_guard
    if run.options.accept_inbound:
        chosen["inbound"] = True
    reason = _why_settings(run, client)
    if reason is None:
        reason = _by_plugin(run, client)
    if reason is not None:
        _by_settings(run, client, reason)
    chosen["route"] = "plugin" if reason is None else "settings"


def _why_settings(run: Work, client: Client) -> str | None:
    """Why the plugin is out of the question, None if it isn't."""
    if run.options.settings:
        return "as asked for"
    if client.program is None:
        return None if client.installed() else "claude is not on PATH"
    version = None if run.dry else client.version()
    if version is not None and version < OLDEST:
        return f"claude {'.'.join(map(str, version))} is older than {'.'.join(map(str, OLDEST))}"
    return None


# --- the plugin ----------------------------------------------------------------------------


def _by_plugin(run: Work, client: Client) -> str | None:
    """Generate and install the plugin; why it didn't work, None if it did."""
    folder = claude_plugin.folder(run.data)
    version = claude_plugin.generate(run, guard=run.managed.choice("claude")["guard"])
    present = client.installed()
    done = [] if present == version and client.marketplace() == folder else _commands(client, folder, present)
    base = edit.former(run, client.settings, _text(client.settings))
    reason = None if run.dry else _tell_client(run, client, done)
    if reason is not None:
        return reason
    _leave_settings(run, client)
    if done and not run.dry:
        _keep_style(run, client, base)
    state = "already_present" if not done else "updated" if present else "added"
    detail = f"noted in {client.settings}; restart Claude Code, or /reload-plugins" if done else ""
    run.tell("plugin", folder, state, detail, commands=[" ".join(["claude", *words]) for words in done])
    _inbound(run, client)
    return None


def _tell_client(run: Work, client: Client, commands: list[list[str]]) -> str | None:
    """Run the commands; why it didn't work, None if it did.

    The settings give up our hooks between the last two: not before the client has shown that it
    knows plugins, and not after it has ours, since both at once would fire twice.
    """
    for words in commands:
        if words[1] == "install":
            _leave_settings(run, client)
        code, said = client.call(*words)
        if code and words[1:3] != ["marketplace", "update"]:
            run.tell(
                "plugin", claude_plugin.folder(run.data), "skipped", f"claude {' '.join(words)}: {_last_line(said)}"
            )
            return "its plugin commands failed"
    return None


def _leave_settings(run: Work, client: Client) -> None:
    """Our hooks out of the settings, and the skill beside them away. Raises Failed if that can't be done."""
    if edit.mentions_us(client.settings) and edit.unmerge(run, "hooks", client.settings) == "failed":
        raise Failed("our hooks are in the settings, so the plugin was not installed")
    _withdraw_skill(run, client)


def _commands(client: Client, folder: str, present: str | None) -> list[list[str]]:
    """What the client has to be told."""
    if client.program is None:
        return []  # it loads the folder in place, and that is up to date now
    known = client.marketplace()
    words = [["plugin", "marketplace", "remove", claude_plugin.NAME]] if known not in (None, folder) else []
    if known != folder:
        return [*words, ["plugin", "marketplace", "add", folder], ["plugin", "install", NAME]]
    if present is None:
        return [["plugin", "install", NAME]]
    return [["plugin", "marketplace", "update", claude_plugin.NAME], ["plugin", "update", NAME]]


def _keep_style(run: Work, client: Client, base: str | None) -> None:
    """`base`, the settings without us, with what the client put in, if that is all it did."""
    after = _text(client.settings)
    try:
        values = hooksfile.root_of(after or "").value
        found = {path: hooksfile.value_at(values, path) for path in _BY_CLIENT}
        wanted = Wanted(values={path: value for path, (there, value) in found.items() if there})
        new, memory = hooksfile.add(base or "", wanted)
        if hooksfile.root_of(new).value != values:
            return
        edit.remember(run, client.settings, base, new, memory.as_json())
        run.put(client.settings, edit.encode(new), edit.encode(after or ""))
    except (Malformed, Failed, Changed):
        return  # the client's own style is as good


def _inbound(run: Work, client: Client) -> None:
    """Accept messages of other sessions without a dialog, if somebody asked for it, now or before."""
    if not run.managed.choice("claude").get("inbound"):
        return
    values: dict[tuple[str, ...], Any] = {_INBOUND: "accept"}
    text = _text(client.settings)
    for path in _BY_CLIENT if text else ():
        there, value = hooksfile.value_at(hooksfile.root_of(text or "").value, path)
        values |= {path: value} if there else {}
    edit.merge(run, "inbound messages", client.settings, Wanted(values=values))


# --- the settings --------------------------------------------------------------------------


def _by_settings(run: Work, client: Client, reason: str) -> None:
    """Hooks into the settings, the skill beside them; the plugin goes first."""
    if not _no_plugin(run, client):
        return
    chosen = run.managed.choice("claude")
    groups = registrations.claude(guard=chosen["guard"], in_settings=True)
    values: dict[tuple[str, ...], Any] = {_INBOUND: "accept"} if chosen.get("inbound") else {}
    state = edit.merge(
        run, "hooks", client.settings, Wanted(groups=groups, values=values), f"in the settings: {reason}"
    )
    if state != "failed":
        skill.place(run, _skill_path(client))


def _no_plugin(run: Work, client: Client) -> bool:
    """Remove the plugin if it is installed, or say why that can't be done: hooks would fire twice."""
    if client.installed() is None:
        return True
    folder = claude_plugin.folder(run.data)
    if client.program is None:
        run.tell("plugin", folder, "failed", "it is installed, and claude is not on PATH to remove it")
        return False
    return _remove_plugin(run, client)


def _remove_plugin(run: Work, client: Client) -> bool:
    """Uninstall plugin and marketplace by the client's commands; the settings get their old text back."""
    folder = claude_plugin.folder(run.data)
    commands = [["plugin", "uninstall", NAME]] if client.installed() else []
    commands += [["plugin", "marketplace", "remove", claude_plugin.NAME]] if client.marketplace() else []
    before = _text(client.settings)
    for words in commands if not run.dry else []:
        code, said = client.call(*words)
        if code:
            run.tell("plugin", folder, "failed", f"claude {' '.join(words)}: {_last_line(said)}")
            return False
    if commands and not run.dry:
        _old_text(run, client, before)
    gone = claude_plugin.remove(run)
    shown = [" ".join(["claude", *words]) for words in commands]
    run.tell("plugin", folder, "removed" if commands or gone else "already_absent", commands=shown)
    return True


def _old_text(run: Work, client: Client, before: str | None) -> None:
    """The text from before our install, if it means the same as what the client left."""
    after = _text(client.settings)
    memory = Memory.of((run.managed.files.get(os.path.realpath(client.settings)) or {}).get("memory"))
    try:
        former = edit.former(run, client.settings, before)
        if _meaning(former) == _meaning(hooksfile.strip(after or "", memory)):
            edit.write_back(run, client.settings, former, None if after is None else edit.encode(after))
            run.managed.files.pop(os.path.realpath(client.settings), None)
    except (Malformed, Failed, Changed):
        return


def _meaning(text: str | None) -> dict[str, Any]:
    """The values of the settings, without the empty containers that the client leaves behind."""
    values: dict[str, Any] = hooksfile.root_of(text or "").value
    names = [path[0] for path in _BY_CLIENT]
    return {key: value for key, value in values.items() if value or key not in names}


# --- both ----------------------------------------------------------------------------------


def uninstall(run: Work) -> None:
    """Plugin, hooks, setting and skill out again."""
    client = Client(run)
    if client.installed() or client.marketplace():
        if client.program is None:
            run.tell("plugin", claude_plugin.folder(run.data), "failed", "claude is not on PATH to remove it")
        else:
            _remove_plugin(run, client)
    else:
        gone = claude_plugin.remove(run)
        run.tell("plugin", claude_plugin.folder(run.data), "removed" if gone else "already_absent")
    edit.unmerge(run, "hooks", client.settings)
    _withdraw_skill(run, client, tell=True)
    run.managed.choices.pop("claude", None)


def _withdraw_skill(run: Work, client: Client, *, tell: bool = False) -> None:
    """The skill outside the plugin: with the plugin it would be listed twice."""
    path = _skill_path(client)
    if tell or path in run.managed.skills or (os.path.islink(path) and skill.is_ours(run, path)):
        skill.withdraw(run, path)


def _skill_path(client: Client) -> str:
    """Where Claude Code looks for the user's skills."""
    return os.path.join(client.root, "skills", skill.NAME)


def _text(path: str) -> str | None:
    """A settings file as text, None if there is none. Raises Failed or Malformed for what is none."""
    data = work.read(path)
    return None if data is None else edit.decode(data)


def _last_line(said: str) -> str:
    """The end of what a program said, where its error is."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no word"
