"""Our entries in a settings file of hooks: are they there, put them in, take them out. Text to text.

An entry is ours if its command ends with the marker. Whatever else is in the file is not looked
at twice. `Memory` says what was there before, so that taking out leaves no trace.
"""

from __future__ import annotations

from bus.records import Record
from tt.install import jsontext
from tt.install.jsontext import Malformed, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    Path = tuple[str, ...]

NAMED = "talking-stick"  # our named hook, in files that name their hooks
MARKER = " # talking-stick"  # a shell comment at the end of every command that we install


class Group(Record):
    """Handlers of one event, with the matcher that chooses among its kinds."""

    event: str
    handlers: list[Json]
    matcher: str | None = None


class Wanted(Record):
    """What shall be in the file: groups of hooks, and single values by their path of keys."""

    groups: list[Group] = []  # noqa: RUF012  # a record's default is never changed in place
    values: dict[tuple[str, ...], Any] = {}  # noqa: RUF012  # the same


class Memory(Record):
    """`had`: containers that were there; `set`: (path, our value, whether there was one, which)."""

    had: list[list[str]]
    set: list[tuple[list[str], Any, bool, Any]]

    @classmethod
    def of(cls, stored: Json | None) -> Memory:
        """From its JSON form; empty for none."""
        stored = stored or {}
        return cls(had=list(stored.get("had", [])), set=[tuple(entry) for entry in stored.get("set", [])])

    def as_json(self) -> Json:
        """To be kept in the managed state."""
        return {"had": self.had, "set": [list(entry) for entry in self.set]}


def is_ours(handler: object) -> bool:
    """Whether we installed this handler."""
    return isinstance(handler, dict) and str(handler.get("command", "")).endswith(MARKER)


def root_of(text: str) -> Node:
    """The object of the whole file; a blank file counts as an empty one. Malformed otherwise."""
    root = jsontext.parse(text if text.strip("\ufeff \t\r\n") else "{}")
    if not isinstance(root.value, dict):
        raise Malformed("it holds no JSON object")
    return root


def found(text: str) -> list[tuple[str, str | None, Json]]:
    """Our handlers in the file as (event, matcher, handler)."""
    return [
        (event.key or "", group.node.value.get("matcher"), handler.node.value)
        for event in _events(root_of(text))
        for group in _items(event.node)
        for handler in _handlers(group.node)
        if is_ours(handler.node.value)
    ]


def holds(text: str, wanted: Wanted) -> bool:
    """Whether the file has exactly our wanted handlers, and the wanted values."""
    have = found(text)
    want = [(group.event, group.matcher, handler) for group in wanted.groups for handler in group.handlers]
    same = len(have) == len(want) and all(have.count(one) == want.count(one) for one in want)
    return same and all(value_at(root_of(text).value, path) == (True, value) for path, value in wanted.values.items())


def value_at(value: Any, path: Path | list[str]) -> tuple[bool, Any]:
    """Whether there is a value at a path of keys, and which."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False, None
        value = value[key]
    return True, value


def add(text: str, wanted: Wanted) -> tuple[str, Memory]:
    """The text with our entries, which must not be in it yet, and what it takes to undo that."""
    before = root_of(text).value
    memory = Memory(had=[list(path) for path in _containers(wanted) if value_at(before, path)[0]], set=[])
    new = text if text.strip("\ufeff \t\r\n") else text + "{}\n"
    for group in wanted.groups:
        new = _add_group(new, group)
    for path, value in wanted.values.items():
        new = _set(new, path, value, memory)
    if root_of(strip(new, memory)).value != before:
        raise Malformed("its structure is not understood well enough to change it safely")
    return new, memory


def _containers(wanted: Wanted) -> list[Path]:
    """Every container that the wanted entries stand in, each once."""
    paths: list[Path] = []
    for group in wanted.groups:
        paths += [("hooks",), ("hooks", group.event)]
    for path in wanted.values:
        paths += [path[:size] for size in range(1, len(path))]
    return list(dict.fromkeys(paths))


def _add_group(text: str, group: Group) -> str:
    """One group, at the end of its event."""
    text = _make(text, ("hooks",), {})
    text = _make(text, ("hooks", group.event), [])
    shown: Json = {} if group.matcher is None else {"matcher": group.matcher}
    shown["hooks"] = group.handlers
    event = _node(text, ("hooks", group.event))
    return jsontext.insert(text, event, None, shown, 2)


def _make(text: str, path: Path, empty: object) -> str:
    """The text with a container at this path; refused if something else is there."""
    there, value = value_at(root_of(text).value, path)
    if not there:
        return jsontext.insert(text, _node(text, path[:-1]), path[-1], empty, len(path) - 1)
    if type(value) is not type(empty):
        raise Malformed(f"{'.'.join(path)} is not {'an object' if empty == {} else 'a list'}")
    return text


def _node(text: str, path: Path) -> Node:
    """The node at a path that exists."""
    node = root_of(text)
    for key in path:
        inner = node.get(key)
        if inner is None:
            raise Malformed(f"{key!r} is missing")
        node = inner
    return node


def _set(text: str, path: Path, value: object, memory: Memory) -> str:
    """One value, with the one that was there kept."""
    for size in range(1, len(path)):
        text = _make(text, path[:size], {})
    there, old = value_at(root_of(text).value, path)
    if there and old == value:
        return text  # somebody else's, so it is not ours to take out
    memory.set.append((list(path), value, there, old))
    if there:
        return jsontext.replace(text, _node(text, path), value, len(path))
    return jsontext.insert(text, _node(text, path[:-1]), path[-1], value, len(path) - 1)


def strip(text: str, memory: Memory) -> str:
    """The text without our entries. What others changed since stays as they left it."""
    if not text.strip("\ufeff \t\r\n"):
        return text
    while True:
        shorter = _strip_one(text, memory)
        if shorter is None:
            break
        text = shorter
    text = _strip_named(text)
    for path, ours, had, old in memory.set:
        if value_at(root_of(text).value, path) == (True, ours):
            text = _unset(text, tuple(path), had, old, memory)
    return text


def _strip_named(text: str) -> str:
    """The text without a named hook of ours (Antigravity's form), also where nobody remembers it."""
    root = root_of(text)
    named = root.value.get(NAMED)
    handlers = [one for event in named.values() for one in event] if _is_named_hook(named) else []
    if not handlers or not all(is_ours(one) for one in handlers):
        return text
    return jsontext.remove(text, root, [entry.key for entry in root.entries].index(NAMED))


def _is_named_hook(value: object) -> bool:
    """Whether it is an object of lists."""
    return isinstance(value, dict) and all(isinstance(event, list) for event in value.values())


def _strip_one(text: str, memory: Memory) -> str | None:
    """Without the first of our handlers, and without what it leaves empty; None when there is none."""
    root = root_of(text)
    for event in _events(root):
        for number, group in enumerate(event.node.entries):
            handlers = _handlers(group.node)
            for index, handler in enumerate(handlers):
                if is_ours(handler.node.value):
                    if len(handlers) > 1:
                        inner = group.node.get("hooks")
                        return jsontext.remove(text, inner, index) if inner else None
                    return _drop_group(text, event, number, memory)
    return None


def _drop_group(text: str, event: jsontext.Entry, number: int, memory: Memory) -> str:
    """Without a group that held only ours, and without the event and the hooks if we had made them."""
    text = jsontext.remove(text, event.node, number)
    return _prune(text, ("hooks", event.key or ""), memory)


def _prune(text: str, path: Path, memory: Memory) -> str:
    """Without empty containers from a path upwards, up to the first that was there before us."""
    while path:
        there, value = value_at(root_of(text).value, path)
        if not there or value or list(path) in memory.had:
            break
        parent = _node(text, path[:-1])
        keys = [entry.key for entry in parent.entries]
        text = jsontext.remove(text, parent, keys.index(path[-1]))
        path = path[:-1]
    return text


def _unset(text: str, path: Path, had: bool, old: object, memory: Memory) -> str:  # noqa: FBT001  # a remembered fact
    """The former value again, or none."""
    if had:
        return jsontext.replace(text, _node(text, path), old, len(path))
    parent = _node(text, path[:-1])
    keys = [entry.key for entry in parent.entries]
    text = jsontext.remove(text, parent, keys.index(path[-1]))
    return _prune(text, path[:-1], memory)


def _events(root: Node) -> list[jsontext.Entry]:
    """The events under `hooks`."""
    hooks = root.get("hooks")
    return hooks.entries if hooks and isinstance(hooks.value, dict) else []


def _items(node: Node) -> list[jsontext.Entry]:
    """Groups of an event that are objects."""
    return (
        [entry for entry in node.entries if isinstance(entry.node.value, dict)] if isinstance(node.value, list) else []
    )


def _handlers(group: Node) -> list[jsontext.Entry]:
    """Handlers of a group."""
    hooks = group.get("hooks") if isinstance(group.value, dict) else None
    return hooks.entries if hooks and isinstance(hooks.value, list) else []
