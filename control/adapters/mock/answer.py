"""What goes back over the wire: JSON answers and events of a stream, in vLLM's shape."""

from collections.abc import Sequence
from typing import Any

import orjson

from control.adapters.mock.text import Text

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
BROKEN = b'data: {"id": "chatcmpl-\n\n'


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """Tokens of a request, the way OpenAI tells them."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


class Answer:
    """One answer under way: its text by tokens, and how that is written."""

    def __init__(self, chat: bool, id: str, model: str, created: int, text: Text, tool: str | None) -> None:
        self.chat, self.text, self.tool = chat, text, tool
        kind = ("chat.completion" if chat else "text_completion") + (".chunk" if chat else "")
        self.head = {"id": id, "object": kind, "created": created, "model": model}
        marked = self.event({"choices": [self.choice("@", None)]})
        # All chunks but the last differ in their text alone: it is put between these two.
        self.before, _, self.after = marked.partition(b'"@"')

    def event(self, body: dict[str, Any]) -> bytes:
        """One event of the stream."""
        return b"data: " + orjson.dumps(self.head | body) + b"\n\n"

    def choice(self, text: str, finish: str | None) -> dict[str, Any]:
        """The choice of a chunk that brings `text`."""
        if not self.chat:
            return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        delta: dict[str, Any] = {"content": text}
        if self.tool is not None:
            delta = {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}

    def opening(self) -> bytes:
        """What a chat's stream begins with: the role, and the tool that is called."""
        if not self.chat:
            return b""
        events = self.delta({"role": "assistant", "content": ""})
        if self.tool is not None:
            events += self.delta({"tool_calls": [{"index": 0, **self.tool_call("")}]})
        return events

    def delta(self, delta: dict[str, Any]) -> bytes:
        """A chat chunk that brings `delta`."""
        return self.event({"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]})

    def tool_call(self, arguments: str) -> dict[str, Any]:
        """The call of its tool."""
        number = str(self.head["id"])[-16:]
        return {"id": f"call_{number}", "type": "function", "function": {"name": self.tool, "arguments": arguments}}

    def chunk(self, first: int, last: int) -> bytes:
        """The chunk with tokens [first, last)."""
        return self.before + orjson.dumps(self.text(first, last)) + self.after

    def last_chunk(self, first: int, last: int, finish: str) -> bytes:
        """The chunk with the last tokens, which says why the answer ends."""
        return self.event({"choices": [self.choice(self.text(first, last), finish)]})

    def usage_chunk(self, counts: dict[str, Any]) -> bytes:
        """The chunk that only tells the usage."""
        return self.event({"choices": [], "usage": counts})

    def whole(self, tokens: int, finish: str, counts: dict[str, Any], transfer: dict[str, Any] | None) -> bytes:
        """The answer in one piece."""
        said = self.text(0, tokens)
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": finish, "stop_reason": None}
        if self.chat:
            calls: Sequence[Any] = [self.tool_call(said)] if self.tool is not None else []
            content = None if calls else said
            choice["message"] = {"role": "assistant", "content": content, "tool_calls": calls}
        else:
            choice["text"] = said
        head = self.head | {"object": "chat.completion" if self.chat else "text_completion"}
        return orjson.dumps(head | {"choices": [choice], "usage": counts, "kv_transfer_params": transfer})
