"""`Claude` and `Codex`: the published clients, run as a user runs them, against the scripted model.

Every client has a home of its own with a dummy key and nothing of the developer's; sockets and
task files stay inside the test's folder; only loopback is reached. `close` ends all by pid.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shlex
import signal
import time

import psutil

from tests.clients.terminal import Terminal
from tests.clients.where import PINNED, find
from tests.kit.procs import Proc, Run, gone, kill_holding, send, start_directly, wait_for

KEY = "dummy-key-for-loopback"
DEAD = "http://127.0.0.1:9"  # where all that is not loopback is sent: nobody listens there
NOWHERE = {name: DEAD for proxy in ("http_proxy", "https_proxy", "all_proxy") for name in (proxy, proxy.upper())}
NOWHERE |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")


class Done(Run):
    """A finished run; `seconds` is its wall time."""

    seconds = 0.0


class Client:
    """What both have in common. `home`, `project` (its directory), `env` (all it gets)."""

    kind = ""

    def __init__(self, world, model, project: str, name: str = "", **env: str) -> None:
        """`env` adds variables."""
        self.world, self.model, self.project = world, model, os.path.realpath(project)
        self.name = name or self.kind
        self.program = find(self.kind) or self.kind
        self.home = world.folder(f"home-{self.name}")
        self.more = env
        self.terminal: Terminal | None = None
        self._terminals = 0
        self._prepare()

    def _prepare(self) -> None:
        raise NotImplementedError

    def _own(self) -> dict[str, str]:
        raise NotImplementedError

    @property
    def env(self) -> dict[str, str]:
        """The environment from scratch, with the world's limits as they are now."""
        temporary = self.world.folder("t")  # short: a socket's path has room for 107 bytes
        places = {"HOME": self.home, "TMPDIR": temporary, "SHELL": "/bin/bash", "TERM": "xterm-256color"}
        return self.world.env(**places) | NOWHERE | self._own() | self.more

    # --- without a terminal ---

    def start(self, *args: str, cwd: str | None = None) -> Proc:
        """Start the program with these arguments and go on."""
        proc = Proc([self.program, *args], start_directly(cwd or self.project, self.env))
        self.world.procs.append(proc)
        return proc

    def run(self, *args: str, timeout: float = 60) -> Done:
        """Run the program to its end."""
        began = time.monotonic()
        run = self.start(*args).wait(timeout)
        done = Done(run.argv, run.code, run.out, run.err)
        done.seconds = time.monotonic() - began
        return done

    # --- in a terminal ---

    def _open(self, args) -> Terminal:
        assert self.terminal is None or not self.terminal.running, "one terminal at a time"
        self._shut()
        self._terminals += 1
        place = os.path.join(self.world.top, "x")
        name = f"{self.name}{self._terminals}"
        self.terminal = Terminal(place, name, [self.program, *args], self.project, self.env)
        return self.terminal

    def _shut(self) -> None:
        if self.terminal is not None:
            self.terminal.close()
            self.terminal = None

    @property
    def pid(self) -> int:
        """The process of the interactive client."""
        return self._live.pid

    @property
    def _live(self) -> Terminal:
        assert self.terminal is not None, "no interactive session was started"
        return self.terminal

    def screen(self) -> str:
        """What the person sees."""
        return self._live.screen()

    def keys(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self._live.keys(*keys)

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type a prompt or a slash command and send it."""
        self._live.type(text, enter=enter)

    def ask(self, prompt: str, requests: int = 1, timeout: float = 30):
        """Type a prompt, wait for so many requests and for the end of the turn; the last request."""
        before = self.model.count()
        self.type(prompt)
        self.model.wait_count(before + requests, timeout)
        self.model.quiet(0.8)
        return self.model.mains()[-1]

    def kill9(self) -> None:
        """SIGKILL for the interactive client."""
        pid = self.pid
        send(pid, signal.SIGKILL)
        wait_for(lambda: gone(pid), what="the client's end")

    def close(self) -> None:
        """End everything that has this home in its environment or its command line."""
        self._shut()
        kill_holding(self.home)


class Claude(Client):
    """Claude Code. Settings given by `settings` are there before it starts."""

    kind = "claude"

    def _prepare(self) -> None:
        self.config = os.path.join(self.home, ".claude")
        os.makedirs(self.config, exist_ok=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": PINNED["claude"],
            "numStartups": 5,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {self.project: trusted},
        }
        self.world.write(self.home, ".claude.json", json.dumps(state))
        self.settings(skipDangerousModePermissionPrompt=True)

    def _own(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_TMPDIR": self.world.folder("t"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",  # it refuses bypass mode to root otherwise
        }

    @property
    def settings_file(self) -> str:
        """The user's settings."""
        return os.path.join(self.config, "settings.json")

    def settings(self, **more) -> None:
        """Add keys to the user's settings."""
        have = {}
        with contextlib.suppress(FileNotFoundError), open(self.settings_file, encoding="utf-8") as file:
            have = json.load(file)
        self.world.write(self.config, "settings.json", json.dumps(have | more, indent=2) + "\n")

    def headless(self, prompt: str, *args: str, bypass: bool = True, timeout: float = 60) -> Done:
        """`claude -p PROMPT`, to its end."""
        return self.run(*self._headless(prompt, args, bypass=bypass), timeout=timeout)

    def headless_started(self, prompt: str, *args: str, bypass: bool = True) -> Proc:
        """`claude -p PROMPT`, running."""
        return self.start(*self._headless(prompt, args, bypass=bypass))

    @staticmethod
    def _headless(prompt: str, args, *, bypass: bool):
        return ["-p", prompt, *(["--dangerously-skip-permissions"] if bypass else []), *args]

    def interactive(self, *args: str, bypass: bool = False) -> Claude:
        """Start a session in a terminal; ready for a prompt when this returns.

        Without bypass it is the default mode, where `settings(permissions={"allow": ["Bash"]})`
        lets the model's commands run unasked.
        """
        mode = ["--dangerously-skip-permissions"] if bypass else ["--permission-mode", "default"]
        terminal = self._open([*mode, *args])
        try:
            wait_for(lambda: not terminal.running or self._ready(), 30, "an idle session")
        except AssertionError as error:
            message = f"{error}\n{terminal.screen()}"
            raise AssertionError(message) from None
        assert terminal.running, terminal.screen()
        return self

    def _ready(self) -> bool:
        """Is the session registered and idle, and the prompt there?"""
        return self.registered().get("status") == "idle" and self._live.shows(r"^❯")

    def registered(self) -> dict:
        """The client's own record of the interactive session: sessionId, messagingSocketPath, status."""
        path = os.path.join(self.config, "sessions", f"{self.pid}.json")
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):  # not there yet, or just being written
            return {}

    @property
    def session(self) -> str:
        """The session id now; `/clear` changes it."""
        return self.registered()["sessionId"]

    @property
    def status(self) -> str:
        """What the client says of itself: idle, busy, or shell while only background commands run."""
        return str(self.registered().get("status", ""))

    def idle(self, timeout: float = 20) -> None:
        """Until no turn is open, as the client says; background commands may run."""
        try:
            wait_for(lambda: self.status not in ("busy", ""), timeout, "an idle client")
        except AssertionError as error:
            message = f"{error}: {self.registered()}\n{self.screen()}"
            raise AssertionError(message) from None

    def ask(self, prompt: str, requests: int = 1, timeout: float = 30):
        """The same, and the hooks at the end of the turn have run."""
        request = super().ask(prompt, requests, timeout)
        self.idle()
        return request

    def compact(self) -> None:
        """`/compact`, to its end."""
        self.type("/compact")
        self._live.wait(r"Compacted|Conversation compacted", 30)
        self.model.quiet(0.8)
        self.idle()

    def clear(self) -> None:
        """`/clear`, until the session has its new id."""
        before = self.session
        self.type("/clear")
        wait_for(lambda: self.registered().get("sessionId") not in (None, before), 20, "a new session id")
        self.idle()

    def exit(self) -> None:
        """`/exit`, answering the question about running tasks with its first choice: stop them."""
        terminal = self._live
        self.type("/exit")
        wait_for(lambda: gone(self.pid) or terminal.shows(r"Exit and stop tasks"), 20, "the end or a question")
        if terminal.running:
            self.keys("Enter")
        terminal.wait_end()

    def transcripts(self) -> list[str]:
        """The transcript files of all its sessions, oldest first."""
        found = glob.glob(os.path.join(glob.escape(self.config), "projects", "*", "*.jsonl"))
        return sorted(found, key=os.path.getmtime)


class Codex(Client):
    """Codex. Its TUI starts a daemon that outlives it; `close` and `stop_daemon` end that by pid."""

    kind = "codex"
    FULL = ("--dangerously-bypass-approvals-and-sandbox",)

    def _prepare(self) -> None:
        self.config = os.path.join(self.home, ".codex")
        os.makedirs(self.config, exist_ok=True)
        self.world.write(self.config, "config.toml", self._config())
        # its shell tool is a login shell, for which Debian's /etc/profile sets PATH anew
        self.world.write(self.home, ".profile", f"export PATH={shlex.quote(self.world.env()['PATH'])}\n")

    def _config(self) -> str:
        return f"""model = "gpt-5.5"
model_provider = "stub"
check_for_update_on_startup = false

[model_providers.stub]
name = "stub"
base_url = "{self.model.url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[projects.{json.dumps(self.project)}]
trust_level = "trusted"
"""

    def _own(self) -> dict[str, str]:
        return {"STUB_KEY": KEY}

    @property
    def config_file(self) -> str:
        """Its config.toml, where trust in hooks is kept too."""
        return os.path.join(self.config, "config.toml")

    @property
    def hooks_file(self) -> str:
        """Its hooks.json."""
        return os.path.join(self.config, "hooks.json")

    def exec_line(self, prompt: str) -> str:
        """A shell line that runs this client headless from inside another one, in this home."""
        own = {key: value for key, value in self.env.items() if key in ("HOME", "STUB_KEY", *NOWHERE)}
        words = [f"{key}={value}" for key, value in own.items()]
        return shlex.join(["env", *words, self.program, "exec", "--skip-git-repo-check", *self.FULL, prompt])

    def exec(self, prompt: str, *args: str, full: bool = True, timeout: float = 60) -> Done:
        """`codex exec PROMPT`, to its end; without `full` in its default sandbox."""
        words = ["exec", "--skip-git-repo-check", *(self.FULL if full else ()), *args, prompt]
        return self.run(*words, timeout=timeout)

    def tui(self, *args: str, timeout: float = 40) -> Codex:
        """Start the TUI as a user does, with the shared daemon; trusts hooks when it asks."""
        terminal = self._open([*self.FULL, *args])
        until = time.monotonic() + timeout
        while not self._prompting():
            self._answer(r"2\. Use existing model")
            self._answer(r"2\. Trust all and continue")
            assert terminal.running, terminal.screen()
            assert time.monotonic() < until, f"no prompt\n{terminal.screen()}"
        return self

    def _prompting(self) -> bool:
        """Does the screen hold the input line and no question?"""
        screen = self.screen()
        asks = re.search(r"Trust all and continue|Use existing model|Press enter to", screen)
        return not asks and re.search(r"^\s*›", screen, re.MULTILINE) is not None and "gpt-5.5" in screen.lower()

    def _answer(self, choice: str) -> None:
        """Choose this in a list, if it is asked."""
        terminal = self._live
        if not terminal.shows(choice):
            return
        for key, reached in (
            ("Down", lambda: terminal.shows("› " + choice)),
            ("Enter", lambda: not terminal.shows(choice)),
        ):
            self._press(key, reached)

    def _press(self, key: str, reached) -> None:
        """Press until it has worked: what a dialog gets while it is being drawn is lost."""
        for _ in range(8):
            if reached():
                return
            self.keys(key)
            with contextlib.suppress(AssertionError):
                wait_for(reached, 1)
        assert reached(), self.screen()

    def trusted(self) -> int:
        """How many hooks are trusted."""
        with open(self.config_file, encoding="utf-8") as file:
            return file.read().count("trusted_hash")

    def trust_hooks(self) -> int:
        """Start the TUI once, trust the hooks that are registered, end it all; how many are trusted."""
        self.tui()
        wait_for(self.trusted, 10, "trusted hooks in config.toml")
        self.quit()
        self.stop_daemon()
        return self.trusted()

    def quit(self) -> None:
        """`/quit`: the TUI ends, the daemon and its threads live on."""
        self.type("/quit")
        self._live.wait_end()

    def threads(self) -> list[str]:
        """The ids of its threads, oldest first."""
        found = glob.glob(os.path.join(glob.escape(self.config), "sessions", "**", "rollout-*.jsonl"), recursive=True)
        return [path.removesuffix(".jsonl")[-36:] for path in sorted(found, key=os.path.getmtime)]

    def queue(self, thread: str, text: str) -> Done:
        """`codex queue`."""
        return self.run("queue", "--thread", thread, "--message", text, timeout=30)

    def daemons(self) -> list[int]:
        """The processes whose program lies in this home: the daemon's copy of Codex."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.exe().startswith(self.home + os.sep) and not gone(process.pid):
                    found.append(process.pid)
        return found

    def stop_daemon(self) -> None:
        """End the daemon, by pid: politely, then not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            pids = self.daemons()
            for pid in pids:
                send(pid, number)
            with contextlib.suppress(AssertionError):
                wait_for(lambda: not self.daemons(), 5, "the end of the daemon")
                return

    def close(self) -> None:
        """End the terminal, the daemon and all that is left."""
        self._shut()
        self.stop_daemon()
        super().close()
