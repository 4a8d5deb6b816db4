"""A client of the OpenAI wire that measures: one streamed request, with the time of every piece that came."""

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
LONGEST_LINE = 2**22  # bytes of one event


@dataclass
class Answer:
    """What came back. Times are s on the monotonic clock; token counts are the server's own, 0 where it states none."""

    sent_s: float
    pieces_s: list[float] = field(default_factory=list)  # when text came
    ended_s: float = 0.0
    text: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    failure: str | None = None  # class of what went wrong: "http 503", "timeout", "connect", "stream", "cut"
    message: str = ""  # in the server's or the system's words

    @property
    def tokens(self) -> int:
        """Tokens generated: as stated, else the pieces that came."""
        return self.output_tokens or len(self.pieces_s)

    @property
    def ttft_s(self) -> float:
        """Sent to first piece of text, s; nan without one."""
        return self.pieces_s[0] - self.sent_s if self.pieces_s else float("nan")

    @property
    def e2e_s(self) -> float:
        """Sent to the end, s."""
        return self.ended_s - self.sent_s

    @property
    def tpot_s(self) -> float:
        """Time per token after the first, s; nan below two tokens."""
        if len(self.pieces_s) < 2 or self.tokens < 2:
            return float("nan")
        return (self.pieces_s[-1] - self.pieces_s[0]) / (self.tokens - 1)


def session(timeout_s: float) -> aiohttp.ClientSession:
    """A session without a limit on connections; a request may take `timeout_s` in all."""
    timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(10.0, timeout_s))
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout, read_bufsize=LONGEST_LINE)


async def ask(
    client: aiohttp.ClientSession,
    url: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    into: Answer | None = None,
) -> Answer:
    """Send one request to `url` (with its path) and read its stream to the end; failures are in the answer.

    `into` is filled while the stream comes, for who watches it.
    """
    streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
    kind = {"content-type": "application/json"} | dict(headers or {})
    answer = into or Answer(0.0)
    answer.sent_s = time.perf_counter()
    try:
        async with client.post(url, data=orjson.dumps(streamed), headers=kind) as response:
            if response.status >= 400:
                refused(answer, response.status, await response.read())
            else:
                await read(answer, response)
    except TimeoutError as error:
        answer.failure, answer.message = "timeout", str(error) or "no answer in time"
    except aiohttp.ClientConnectorError as error:
        answer.failure, answer.message = "connect", str(error)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        answer.failure, answer.message = "cut", str(error) or type(error).__name__
    answer.ended_s = time.perf_counter()
    return answer


def refused(answer: Answer, status: int, body: bytes) -> None:
    """Note an HTTP error with the server's message."""
    answer.failure, answer.message = f"http {status}", body.decode("utf-8", "replace")[:300]
    try:
        told = orjson.loads(body)
        error = told.get("error", told)
        answer.message = str(error.get("message", error) if isinstance(error, dict) else error)[:300]
    except (orjson.JSONDecodeError, AttributeError):
        pass


async def read(answer: Answer, response: aiohttp.ClientResponse) -> None:
    """Read the events; without `[DONE]` at the end the stream was cut."""
    parts: list[str] = []
    done = False
    async for data in events(response):
        now_s = time.perf_counter()
        if data == b"[DONE]":
            done = True
            break
        event = orjson.loads(data)
        if "error" in event:
            error = event["error"]
            answer.failure = "stream"
            answer.message = str(error.get("message", error) if isinstance(error, dict) else error)[:300]
            return
        piece = text_of(event)
        if piece:
            parts.append(piece)
            answer.pieces_s.append(now_s)
        note_usage(answer, event.get("usage"))
    answer.text = "".join(parts)
    if not done:
        answer.failure, answer.message = "cut", "the stream ended without [DONE]"


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Payloads of the server-sent events; comments that keep the connection alive are skipped."""
    async for line in response.content:
        if line.startswith(b"data:"):
            yield line[5:].strip()


def text_of(event: Mapping[str, Any]) -> str:
    """The text that an event brings: of a chat, with reasoning and tool calls, or of a completion."""
    found = ""
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        found += choice.get("text") or delta.get("content") or delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls") or ():
            found += (call.get("function") or {}).get("arguments") or ""
    return found


def note_usage(answer: Answer, usage: Mapping[str, Any] | None) -> None:
    """Keep the token counts of an event that has them."""
    if not usage:
        return
    answer.prompt_tokens = usage.get("prompt_tokens") or 0
    answer.output_tokens = usage.get("completion_tokens") or 0
    answer.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
