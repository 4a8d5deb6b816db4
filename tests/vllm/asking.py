"""Calls to a server as an application makes them, and what came back when."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from openai import OpenAI, Stream
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk

from tests.vllm.servers import MODEL, Server

#: A tool whose arguments a model with random weights gets right: it can only choose.
CITIES, DAYS = ("Paris", "Rome"), (1, 2, 3)
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": CITIES}, "days": {"type": "integer", "enum": DAYS}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}


def user(text: str) -> Any:
    """A message of the user."""
    return {"role": "user", "content": text}


def facts(count: int, of: str = "n") -> str:
    """A text of about ten tokens a fact, no two of them alike for two subjects."""
    return " ".join(f"{of} {i} is {i * i}." for i in range(count))


@dataclass
class Answer:
    """What one streamed call gave."""

    text: str = ""
    usage: CompletionUsage | None = None
    finish_reason: str | None = None
    first_s: float | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt, as its usage says."""
        assert self.usage is not None, "the stream gave no usage"
        return self.usage.prompt_tokens

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that a cache held, as its usage says."""
        assert self.usage is not None, "the stream gave no usage"
        assert self.usage.prompt_tokens_details is not None, "the usage has no details"
        return self.usage.prompt_tokens_details.cached_tokens or 0

    def take(self, chunk: Any) -> None:
        """Add a chunk of the stream; the first one with text tells the time (monotonic)."""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices:
            self.text += choice.delta.content or ""
            self.finish_reason = choice.finish_reason or self.finish_reason
            if choice.delta.content and self.first_s is None:
                self.first_s = time.monotonic()


def opened(client: OpenAI, *messages: Any, tokens: int, **more: Any) -> Stream[ChatCompletionChunk]:
    """The open stream of a chat of exactly `tokens` tokens at temperature 0; `more` goes into the body."""
    stream: Stream[ChatCompletionChunk] = client.chat.completions.create(
        model=MODEL,
        messages=messages,
        max_tokens=tokens,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True, **more},
    )
    return stream


def ask(server: Server, *messages: Any, answer: Answer | None = None, tokens: int = 8, **more: Any) -> Answer:
    """All of such a stream, added to `answer` as it comes. Errors are OpenAI's."""
    answer = answer or Answer()
    with server.client() as client, opened(client, *messages, tokens=tokens, **more) as stream:
        for chunk in stream:
            answer.take(chunk)
    return answer


def pool(size: int) -> ThreadPoolExecutor:
    """Threads for calls at the same time."""
    return ThreadPoolExecutor(size, thread_name_prefix="ask")
