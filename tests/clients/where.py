"""Where the published clients are, which versions the tests know, and why they cannot run here."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess

WHERE = "TT_TEST_CLIENTS"  # a node_modules directory that holds them
PINNED = {"claude": "2.1.332", "codex": "0.171.0"}
PACKAGES = {
    "claude": ("@anthropic-ai/claude-code", "@anthropic-ai/claude-code-*/claude"),
    "codex": ("@openai/codex", "@openai/codex-*/vendor/*/bin/codex"),
}


def _node_modules() -> list[str]:
    """Where npm may have put them, the told directory first (and then no other)."""
    told = os.environ.get(WHERE)
    if told:
        return [told]
    places = ["/usr/lib/node_modules", "/usr/local/lib/node_modules"]
    npm = shutil.which("npm")
    if npm:
        done = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        places += done.stdout.split("\n")[:1]
    return places


def find(client: str) -> str | None:
    """The native program of this client, or None where it is not installed."""
    package, program = PACKAGES[client]
    for place in filter(None, _node_modules()):
        # npm puts the platform's package beside the main one, or (installed globally) inside it
        for below in ("", os.path.join(package, "node_modules")):
            found = sorted(glob.glob(os.path.join(glob.escape(place), below, program)))
            if found:
                return found[0]
    return None if os.environ.get(WHERE) else shutil.which(client)


def why_not(client: str) -> str | None:
    """Why tests with this client cannot run here; None if they can."""
    if find(client) is None:
        place = os.environ.get(WHERE) or "npm's global packages or PATH"
        return (
            f"{client} is not in {place} (npm install {PACKAGES[client][0]}@{PINNED[client]}, {WHERE}=…/node_modules)"
        )
    return None if shutil.which("tmux") else "tmux is not installed"


def version(client: str) -> str:
    """What the program says of itself."""
    program = find(client)
    assert program is not None
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, env={"PATH": os.defpath, "HOME": os.devnull}
    )
    return done.stdout.strip()
