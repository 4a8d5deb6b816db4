"""The load: streams that come whether or not the last ones were served, and requests as fast as they are answered."""

import asyncio
import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import aiohttp
import numpy as np
import orjson

from control.gateway.speed.processes import MeasureError

PATH = "/v1/chat/completions"
CHUNKS = 32  # of a stream
VARIETY = 256  # different prompts
WORDS = 160  # of a prompt
PATIENCE_S = 60.0  # an answer may take so long
DONE = b"data: [DONE]"


def bodies(stream: bool, tokens: int) -> list[bytes]:
    """Bodies of chat completions, each with a beginning of its own: no prefix cache makes them alike."""
    draw = random.Random(0)
    words = ("plan", "query", "table", "column", "join", "select", "check", "revise", "answer", "tool", "step")
    made = []
    for k in range(VARIETY):
        said = f"{k} " + " ".join(draw.choice(words) for _ in range(WORDS))
        body = {"model": "mock", "messages": [{"role": "user", "content": said}], "max_tokens": tokens}
        made.append(orjson.dumps(body | {"ignore_eos": True} | ({"stream": True} if stream else {})))
    return made


@dataclass
class Streams:
    """What came of a round of streams."""

    first_ms: list[float] = field(default_factory=list)  # from the request to the first chunk
    complete: int = 0
    failed: int = 0
    chunks: int = 0  # events; fewer than CHUNKS a stream where the servers are late and send several tokens at once

    def percentile_ms(self, q: float) -> float:
        """The q-th percentile of the time to the first chunk, ms; NaN where no stream was served."""
        return float(np.percentile(self.first_ms, q)) if self.first_ms else float("nan")


async def stream_for(urls: Sequence[str], rate: float, seconds: float, seed: int) -> Streams:
    """Open `rate` streams a second, Poisson, for so long, and wait for their ends. Open loop."""
    figures, draw = Streams(), random.Random(seed)
    connector = aiohttp.TCPConnector(limit=0)
    turns, texts = itertools.cycle(urls), itertools.cycle(bodies(True, CHUNKS))
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session:
        tasks, due_s = [], time.monotonic()
        end_s = due_s + seconds
        while due_s < end_s:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            tasks.append(asyncio.create_task(one_stream(session, next(turns) + PATH, next(texts), figures)))
            due_s += draw.expovariate(rate)
        await asyncio.gather(*tasks)
    return figures


async def one_stream(session: aiohttp.ClientSession, url: str, body: bytes, figures: Streams) -> None:
    """One stream, read to its end."""
    chunks, tail, sent_s = 0, b"", time.perf_counter()
    try:
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
            while data := await response.content.readany():
                if not chunks:
                    figures.first_ms.append((time.perf_counter() - sent_s) * 1e3)
                chunks += data.count(b"data:")
                tail = (tail + data)[-len(DONE) - 8 :]
    except (aiohttp.ClientError, TimeoutError):
        pass
    served = DONE in tail
    figures.chunks += chunks
    figures.complete += served
    figures.failed += not served


class Connection(asyncio.Protocol):
    """One kept connection that sends a request as soon as the last one was answered.

    It reads no more of HTTP than where an answer ends: the client shares the processors with what is measured.
    """

    def __init__(self, requests: Sequence[bytes], first: int, end_s: float) -> None:
        self.requests, self.next = requests, first
        self.end_s = end_s
        self.answered, self.failed = 0, 0
        self.buffer = b""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast(asyncio.Transport, transport)
        self.send()

    def send(self) -> None:
        """The next request."""
        self.buffer = b""
        self.next = (self.next + 1) % len(self.requests)
        self.transport.write(self.requests[self.next])

    def data_received(self, data: bytes) -> None:
        """A part of an answer, or all of it."""
        self.buffer += data
        if not is_whole(self.buffer):
            return
        is_good = self.buffer.startswith(b"HTTP/1.1 200")
        self.answered += is_good
        self.failed += not is_good
        if time.monotonic() < self.end_s:
            self.send()
        else:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """It is over: all sent, or the server closed it."""
        self.failed += time.monotonic() < self.end_s
        if not self.over.done():
            self.over.set_result(None)


def is_whole(answer: bytes) -> bool:
    """Whether an answer has come to its end."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    _, sized, rest = head.lower().partition(b"content-length:")
    if sized:
        return len(body) >= int(rest.split(b"\r\n", 1)[0])
    return body.endswith(b"0\r\n\r\n")


@dataclass
class Requests:
    """What came of a round of requests that are not streamed."""

    answered: int = 0
    failed: int = 0
    seconds: float = 0.0


async def request_for(urls: Sequence[str], connections: int, seconds: float) -> Requests:
    """Keep so many connections busy with requests for one token, for so long. Closed loop.

    Raises:
        MeasureError: some were not answered at all.
    """
    begun_s = time.monotonic()
    kept = [await connect(urls[k % len(urls)], 7 * k, begun_s + seconds) for k in range(connections)]
    _, silent = await asyncio.wait([one.over for one in kept], timeout=seconds + PATIENCE_S)
    if silent:
        raise MeasureError(f"{urls[0]}: {len(silent)} requests were not answered within {PATIENCE_S:.0f} s")
    answered, failed = sum(one.answered for one in kept), sum(one.failed for one in kept)
    return Requests(answered, failed, time.monotonic() - begun_s)


async def connect(url: str, first: int, end_s: float) -> Connection:
    """A busy connection to a server, which begins with body number `first`."""
    place = urlsplit(url)
    head = f"POST {PATH} HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\ncontent-length: "
    whole = [head.encode() + b"%d\r\n\r\n%b" % (len(body), body) for body in bodies(False, 1)]
    one = Connection(whole, first, end_s)
    await asyncio.get_running_loop().create_connection(lambda: one, str(place.hostname), place.port or 80)
    return one
