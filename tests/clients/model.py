"""`Model`: stands for the Anthropic and the OpenAI model on loopback, and answers by script.

    model.script("join", bash("tt join"), say("done"))
    claude.headless("RUN join")
    assert model.wait_count(2).json["status"] == "joined"

The newest user text that holds `RUN <name>` chooses a script; the k-th request after that text is
answered by step k, and whatever comes after the last step by the text `ok ack`. A message of
another agent reaches the model as user text, so its body may choose a script as well.

Every request is kept with its time of arrival. "Main" requests are those of a conversation; what
clients ask beside it (a title, the summary of `/compact`, a token count) is answered and not counted. All waiting is by
condition variable: nothing here sleeps.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import itertools
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.clients import wire

RUN = re.compile(r"\bRUN (\w+)")
TITLE = "Generate a concise, single-line task title"  # Codex asks for one beside the first turn
COMPACT = "Your task is to create a detailed summary of the conversation"  # what `/compact` asks for
DEFAULT = [{"text": "ok ack"}]
ASIDE = [{"text": "<analysis>none</analysis>\n<summary>what was said before</summary>"}]
OUTPUT_TOKENS = 7


# --- what a script is made of ------------------------------------------------------------


def say(text: str) -> dict:
    """An answer in words, which ends the turn unless the same step calls a tool."""
    return {"text": text}


def tool(name: str, **given) -> dict:
    """A call of any tool."""
    return {"tool": name, "input": given}


def bash(command: str, *, background: bool = False, **more) -> dict:
    """Claude's shell tool."""
    given = {"command": command, "description": "a command", **more}
    return tool("Bash", **given, run_in_background=True) if background else tool("Bash", **given)


def shell(command: str, **more) -> dict:
    """Codex's shell tool; it comes back with a running session after `yield_time_ms`."""
    return tool("exec_command", cmd=command, **more)


def subagent(prompt: str, *, background: bool = False) -> dict:
    """Claude's sub-agent tool."""
    return tool(
        "Agent",
        description="sub work",
        prompt=prompt,
        subagent_type="general-purpose",
        run_in_background=background,
    )


def hold(gate: str) -> dict:
    """The answer waits until the test says `model.let(gate)`: the turn stays open as long."""
    return {"gate": gate}


# --- what a request says -----------------------------------------------------------------


def words(content) -> str:
    """All text of a content value of either API, tool results included."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content) if content else ""
    parts = []
    for block in content:
        if block.get("type") == "tool_result":
            parts.append(words(block.get("content")))
        elif "text" in block:
            parts.append(block["text"])
    return "\n".join(parts)


class Item:
    """One entry of a conversation: who, what, and the results of tools among it."""

    def __init__(self, role: str, text: str, results: tuple[str, ...] = ()) -> None:
        self.role, self.text, self.results = role, text, results

    def __repr__(self) -> str:
        return f"[{self.role}] {self.text}"


def _anthropic_item(message) -> Item:
    content = message["content"]
    blocks = content if isinstance(content, list) else []
    results = tuple(words(one.get("content")) for one in blocks if one.get("type") == "tool_result")
    return Item(message["role"], words(content), results)


def _openai_item(entry) -> Item:
    kind = entry.get("type", "message")
    if kind == "message":
        return Item(entry["role"], words(entry["content"]))
    if kind.endswith("_output"):
        text = words(entry.get("output"))
        return Item("user", text, (text,))
    return Item("assistant", json.dumps(entry)) if kind.endswith("_call") else Item("other", json.dumps(entry))


class Request:
    """One request. `at` is monotonic seconds of its arrival, `wall` the same in Unix seconds."""

    def __init__(self, path: str, headers: dict[str, str], body: dict) -> None:
        self.at, self.wall = time.monotonic(), time.time()
        self.path, self.headers, self.body = path, headers, body
        self.number = 0
        self.reply: list[dict] = []
        talks = path.endswith(("/messages", "/responses"))
        aside = any(words in item.text for item in self.new for words in (TITLE, COMPACT))
        self.main = talks and bool(body.get("tools")) and not aside

    @functools.cached_property
    def items(self) -> list[Item]:
        """The conversation so far; for Claude the system prompt is not in it."""
        if "messages" in self.body:
            return [_anthropic_item(message) for message in self.body["messages"]]
        given = self.body.get("input", [])
        entries = given if isinstance(given, list) else [{"role": "user", "content": given}]
        return [_openai_item(entry) for entry in entries]

    @functools.cached_property
    def new(self) -> list[Item]:
        """What the model has not seen before: all after its own last words or calls."""
        spoken = [index for index, item in enumerate(self.items) if item.role == "assistant"]
        return self.items[spoken[-1] + 1 :] if spoken else self.items

    @property
    def new_text(self) -> str:
        """The same as text."""
        return "\n".join(item.text for item in self.new)

    @property
    def text(self) -> str:
        """The whole conversation as text."""
        return "\n".join(item.text for item in self.items)

    @property
    def results(self) -> list[str]:
        """What the tools said that were called by the last answer."""
        return [result for item in self.new for result in item.results]

    @property
    def json(self):
        """The JSON line that the last of these tools printed."""
        for line in reversed("\n".join(self.results).splitlines()):
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    return found
        message = f"no tool printed JSON: {self!r}"
        raise AssertionError(message)

    @property
    def subagent(self) -> str | None:
        """Claude's id of the sub-agent that asks, if it is one."""
        return self.headers.get("x-claude-code-agent-id")

    def __repr__(self) -> str:
        new = "\n    ".join(repr(item)[-700:] for item in self.new)
        return f"request {self.number} {self.path} {self.wall:.3f}\n    {new}"


def new_text(request: Request) -> str:
    """What is new in a request, as text."""
    return request.new_text


# --- the server ---------------------------------------------------------------------------


class Model:
    """The stand-in, on a free port of 127.0.0.1. Close it."""

    def __init__(self, log: str | None = None) -> None:
        """`log`: a file that gets every request as a line of JSON, to look at after a failure."""
        self.scripts: dict[str, list[list[dict]]] = {}
        self.requests: list[Request] = []
        self._log = log
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._gates: set[str] = set()
        self._answering = 0
        self._closed = False
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the APIs are, without the version."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, name: str, *steps) -> str:
        """Answers to the prompt `RUN name`, which is returned; a step is a block or a list of blocks."""
        self.scripts[name] = [step if isinstance(step, list) else [step] for step in steps]
        return f"RUN {name}"

    def let(self, gate: str) -> None:
        """Let the answers go that are held at this gate, now and later."""
        with self._changed:
            self._gates.add(gate)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop serving; held answers are given up."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    # --- looking back and waiting ---

    def mains(self) -> list[Request]:
        """The requests of conversations, in order of arrival."""
        return [request for request in self.requests if request.main]

    def count(self) -> int:
        """How many there were so far: what a later `since` or `after` is measured from."""
        return len(self.mains())

    def since(self, after: int) -> list[Request]:
        """Those after the first `after`."""
        return self.mains()[after:]

    def wait_count(self, number: int, timeout: float = 20) -> Request:
        """The main request of this number (from 1), waited for."""
        self._until(lambda: self.count() >= number, timeout, f"{number} requests")
        return self.mains()[number - 1]

    def wait_next(self, after: int, timeout: float = 20) -> Request:
        """The first main request after the first `after`."""
        return self.wait_count(after + 1, timeout)

    def wait_text(self, text: str, timeout: float = 20, after: int = 0) -> Request:
        """The first main request after the first `after` that says this and did not say it before."""
        found = self._until(lambda: self.saying(text, after), timeout, f"{text!r} in a request")
        return found[0]

    def saying(self, text: str, after: int = 0) -> list[Request]:
        """The main requests (after the first `after`) in which this is new."""
        return [request for request in self.since(after) if text in request.new_text]

    def quiet(self, seconds: float = 1.0, timeout: float = 30) -> None:
        """Until no answer is being given and no main request came for so long."""
        until = time.monotonic() + timeout
        start = time.monotonic()
        with self._changed:
            while True:
                last = max((request.at for request in self.mains()), default=start)
                rest = max(last, start) + seconds - time.monotonic()
                if rest <= 0 and not self._answering:
                    return
                left = until - time.monotonic()
                if left <= 0:
                    message = f"not quiet within {timeout} s\n{self.told()}"
                    raise AssertionError(message)
                self._changed.wait(min(left, rest if rest > 0 else left))

    def _until(self, predicate, timeout: float, what: str):
        with self._changed:
            found = self._changed.wait_for(predicate, timeout)
        if not found:
            message = f"not within {timeout} s: {what}\n{self.told()}"
            raise AssertionError(message)
        return found

    def told(self, last: int = 8) -> str:
        """The last requests, for the message of a failure."""
        return "\n".join(map(repr, self.mains()[-last:])) or "no request came"

    # --- answering ---

    def take(self, request: Request) -> list[dict]:
        """Keep a request and choose its answer; it counts as being answered until `done`."""
        reply = self._choose(request) if request.main else ASIDE
        with self._changed:
            request.number, request.reply = next(self._numbers), reply
            self.requests.append(request)
            self._answering += 1
            self._changed.notify_all()
        if self._log:
            with open(self._log, "a", encoding="utf-8") as file:
                kept = {"n": request.number, "wall": request.wall, "path": request.path, "main": request.main}
                file.write(json.dumps(kept | {"body": request.body, "reply": reply}) + "\n")
        return reply

    def held(self, reply: list[dict]) -> list[dict]:
        """The answer without its gates, once all of them are open."""
        with self._changed:
            for block in reply:
                while "gate" in block and block["gate"] not in self._gates and not self._closed:
                    self._changed.wait()
        return [block for block in reply if "gate" not in block]

    def done(self) -> None:
        """One answer was given or given up."""
        with self._changed:
            self._answering -= 1
            self._changed.notify_all()

    def _choose(self, request: Request) -> list[dict]:
        chosen = at = None
        for index, item in enumerate(request.items):
            if item.role != "user" or item.results:
                continue
            for name in RUN.findall(item.text):
                if name in self.scripts:
                    chosen, at = name, index
        if chosen is None:
            return DEFAULT
        # Codex splits one answer into several entries: a run of them is one step
        roles = [item.role for item in request.items[at:]]
        step = sum(role == "assistant" != before for before, role in itertools.pairwise(roles))
        steps = self.scripts[chosen]
        return steps[step] if step < len(steps) else DEFAULT


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    model: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        """Nothing: requests are kept by the model."""

    def do_HEAD(self) -> None:
        self._plain(200, {})

    def do_GET(self) -> None:
        self._plain(200, {"object": "list", "data": []})

    def do_POST(self) -> None:
        try:
            body = json.loads(self._body())
        except ValueError:
            body = {}
        request = Request(self.path.partition("?")[0], {k.lower(): v for k, v in self.headers.items()}, body)
        if not request.path.endswith(("/messages", "/responses")):
            counted = request.path.endswith("count_tokens")
            self._plain(200 if counted else 404, {"input_tokens": 10} if counted else {})
            return
        reply = self.model.take(request)
        answer = self._messages if request.path.endswith("/messages") else self._responses
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                answer(request, self.model.held(reply))
        finally:
            self.model.done()

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _plain(self, code: int, answer: dict) -> None:
        data = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if self.command != "HEAD" else b"")

    def _stream(self, events) -> None:
        """Server-sent events; the end of the connection ends the answer."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def _messages(self, request: Request, blocks: list[dict]) -> None:
        """An answer of Anthropic's Messages API."""
        message, events = wire.messages(request, blocks, OUTPUT_TOKENS)
        if request.body.get("stream"):
            self._stream(events)
        else:
            self._plain(200, message)

    def _responses(self, request: Request, blocks: list[dict]) -> None:
        """An answer of OpenAI's Responses API."""
        response, events = wire.responses(request, blocks, OUTPUT_TOKENS)
        if request.body.get("stream"):
            self._stream(events)
        else:
            self._plain(200, response)
