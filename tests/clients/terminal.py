"""`Terminal`: one interactive program in tmux, as a person sees and types it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess

from tests.kit.procs import gone, kill_holding, wait_for

WIDTH, HEIGHT = 180, 50


class Terminal:
    """A tmux server of its own (`-L` with the test run's pid), with one pane. Close it."""

    def __init__(self, folder: str, name: str, argv, cwd: str, env: dict[str, str]) -> None:
        """Start `argv` with exactly `env`; the server's socket and all else stay below `folder`."""
        self._folder = os.path.join(folder, name)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        # the folder is in the server's environment as well: `kill_holding` finds it whatever happens
        self._env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self._folder,
            "TMUX_TMPDIR": self._folder,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        self._tmux = [shutil.which("tmux") or "tmux", "-L", f"tt-{os.getpid()}", "-f", os.devnull]
        words = ["env", "-i", *(f"{key}={value}" for key, value in env.items()), *argv]
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        options = ["set-option", "-g", "remain-on-exit", "on", ";"]
        self._run(*options, "new-session", "-d", *size, "-c", cwd, "exec " + shlex.join(words))
        self.pid = int(self._run("display-message", "-p", "#{pane_pid}"))

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"tmux {words[0]}: {done.stderr}"
        return done.stdout

    def screen(self) -> str:
        """What is on the screen now."""
        return self._run("capture-pane", "-p")

    def history(self) -> str:
        """The screen with what has scrolled away above it."""
        return self._run("capture-pane", "-p", "-S", "-2000")

    def shows(self, pattern: str) -> bool:
        """Is there a match on the screen?"""
        return re.search(pattern, self.screen(), re.MULTILINE) is not None

    def wait(self, pattern: str, timeout: float = 20) -> str:
        """Until the screen matches; the screen."""
        try:
            wait_for(lambda: self.shows(pattern), timeout, f"{pattern!r} on the screen")
        except AssertionError as error:
            message = f"{error}\n{self.screen()}"
            raise AssertionError(message) from None
        return self.screen()

    def keys(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Down, Escape, C-c."""
        self._run("send-keys", *keys)

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type; press Enter once the text is on the screen (an earlier one may count as pasted)."""
        self._run("send-keys", "-l", text)
        tail = "".join(text.split())[-24:]
        shown = lambda: tail in "".join(self.screen().split())  # noqa: E731  # one line says it
        wait_for(shown, 10, f"{text!r} on the screen")
        if enter:
            self.keys("Enter")

    @property
    def running(self) -> bool:
        """Does the program run?"""
        return not gone(self.pid)

    def wait_end(self, timeout: float = 20) -> None:
        """Until the program is over."""
        try:
            wait_for(lambda: gone(self.pid), timeout, "the end of the program")
        except AssertionError as error:
            message = f"{error}\n{self.screen()}"
            raise AssertionError(message) from None

    def close(self) -> None:
        """End the server and what hangs on it, each by its pid."""
        kill_holding(self._folder)
