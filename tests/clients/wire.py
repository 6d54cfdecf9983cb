"""Answers in the shapes of the two APIs: the whole message, and the same as a stream of events."""

from __future__ import annotations

import json
import time


def messages(request, blocks: list[dict], tokens: int) -> tuple[dict, list[dict]]:
    """Anthropic Messages."""
    content = [_content(request, index, block) for index, block in enumerate(blocks)]
    stop = "tool_use" if any(part["type"] == "tool_use" for part in content) else "end_turn"
    usage = {
        "input_tokens": 10,
        "output_tokens": 1,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    started = {
        "id": f"msg_{request.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict] = [{"type": "message_start", "message": started}]
    for index, part in enumerate(content):
        if part["type"] == "text":
            empty, delta = {**part, "text": ""}, {"type": "text_delta", "text": part["text"]}
        else:
            given = json.dumps(part["input"])
            empty, delta = {**part, "input": {}}, {"type": "input_json_delta", "partial_json": given}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": stop, "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    ]
    whole = {**started, **ended, "content": content, "usage": {**usage, "output_tokens": tokens}}
    return whole, events


def _content(request, index: int, block: dict) -> dict:
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    name = f"toolu_{request.number:06d}_{index}"
    return {"type": "tool_use", "id": name, "name": block["tool"], "input": block["input"]}


def responses(request, blocks: list[dict], tokens: int) -> tuple[dict, list[dict]]:
    """OpenAI Responses."""
    output = [_entry(request, index, block) for index, block in enumerate(blocks)]
    started = {
        "id": f"resp_{request.number:06d}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": request.body.get("model", "model"),
        "output": [],
    }
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10 + tokens,
    }
    whole = {**started, "status": "completed", "output": output, "usage": usage}
    events: list[dict] = [{"type": "response.created", "response": started}]
    for index, entry in enumerate(output):
        first = {**entry, "status": "in_progress"}
        if entry["type"] == "message":
            first["content"] = []
        events.append({"type": "response.output_item.added", "output_index": index, "item": first})
        if entry["type"] == "message":
            delta = {"item_id": entry["id"], "content_index": 0, "delta": entry["content"][0]["text"]}
            events.append({"type": "response.output_text.delta", "output_index": index, **delta})
        events.append({"type": "response.output_item.done", "output_index": index, "item": entry})
    events.append({"type": "response.completed", "response": whole})
    return whole, [event | {"sequence_number": number} for number, event in enumerate(events)]


def _entry(request, index: int, block: dict) -> dict:
    name = f"{request.number:06d}_{index}"
    if "text" in block:
        content = [{"type": "output_text", "text": block["text"], "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{name}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"call_{name}",
        "name": block["tool"],
        "arguments": json.dumps(block["input"]),
        "status": "completed",
    }
