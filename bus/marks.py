"""The open-turn mark of a session: the small file `turn` beside its bell. No store write.

It says whether the session's turn is open, for which prompt, which prompt was blocked last at
Stop, and when a person last spoke. Whoever writes it rings the bell, since a blocked rewake
waits for the end of the turn.
"""

from __future__ import annotations

import os

from bus import bell, limits
from bus.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bus.store.db import Bus

NOTHING = "-"
WORD_CHARS = 100


class Mark(Record):
    """What the file says; `at` is the last sign of any hook of the session, ms."""

    opened: bool = False
    at: int = 0
    prompt: str = ""
    blocked: str = ""
    person_at: int = 0

    def is_open(self, now: int) -> bool:
        """Is a turn running? An interrupt by the user sends no Stop, so an old mark counts as closed."""
        return self.opened and now - self.at < limits.OPEN_TURN

    def closes_at(self) -> int:
        """When an open mark counts as closed without any further sign."""
        return self.at + limits.OPEN_TURN


def read(bus: Bus, agent: str) -> Mark:
    """The mark; a session whose hooks were never seen has none: closed."""
    try:
        with open(_path(bus, agent), encoding="utf-8") as file:
            words = file.read(1000).split()
    except (OSError, ValueError):
        return Mark()
    if len(words) != 5 or not (words[1].isdecimal() and words[4].isdecimal()):
        return Mark()
    prompt, blocked = ("" if word == NOTHING else word for word in words[2:4])
    return Mark(words[0] == "open", int(words[1]), prompt, blocked, int(words[4]))


def write(bus: Bus, agent: str, mark: Mark, *, ring: bool = True) -> bool:
    """Replace the mark and ring. False when it could not be written: the turn then counts as before.

    Without `ring` where the turn only opens: nothing may be said then that might not before.
    """
    path = _path(bus, agent)
    words = ("open" if mark.opened else "closed", mark.at, word(mark.prompt), word(mark.blocked), mark.person_at)
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, (" ".join(map(str, words)) + "\n").encode())
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except OSError:
        _remove(temporary)
        return False
    if ring:
        bell.ring(bus.agent_bell(agent))
    return True


def _remove(path: str) -> None:
    """Leave no half-made mark behind."""
    try:
        os.unlink(path)
    except OSError:
        return


def _path(bus: Bus, agent: str) -> str:
    """Where the mark lies."""
    return os.path.join(bus.agent_bell(agent), "turn")


def word(text: str) -> str:
    """An id as one word of the file: compare what was read with this, never with the id itself."""
    if not text:
        return NOTHING
    plain = len(text) <= WORD_CHARS and all(char.isascii() and (char.isalnum() or char in "._:-") for char in text)
    if plain and text != NOTHING:
        return text
    from bus import digest  # no client names its prompts like that

    return "id-" + digest.digest(text.encode("utf-8", "surrogatepass"))[:32]
