"""A streamed answer. Chunks go from the core's callback straight to the connection: no task wakes up for a token.

A client that does not read is not waited for: what it has not read is kept, at most an answer's length.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from control.adapters.mock.answer import BROKEN, DONE, KEEP_ALIVE, Answer, usage
from control.adapters.mock.core import Flow
from control.adapters.mock.faults import Faults

FLUSH_S = 0.01  # what was written before a reset is given this long to leave


class Stream:
    """Events of one answer, written as its tokens come."""

    def __init__(self, request: web.Request, answer: Answer, finish: str, include_usage: bool) -> None:
        self.request, self.answer = request, answer
        self.finish, self.include_usage = finish, include_usage
        self.chunked = request.version >= (1, 1)
        self.transport = request.transport
        self.flow: Flow | None = None
        self.at_end: Callable[[Flow], None] = lambda flow: None
        self.sent = 0
        self.prepared, self.told = False, False
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_tokens(self) -> None:
        """Send what has come since the last time; `at_end` is told once that all has."""
        flow = self.flow
        if flow is None:
            return
        if flow.ended and not self.told:
            self.told = True
            self.at_end(flow)
        if self.prepared and not self.over.done():
            self.send(flow)

    def send(self, flow: Flow) -> None:
        """Put on the wire what `flow` has generated since the last time."""
        opening = self.answer.opening() if self.sent == 0 and flow.tokens > 0 else b""
        if flow.ended:
            self.write(opening + self.ending(flow))
            self.over.set_result(None)
        elif flow.tokens > self.sent:
            self.write(opening + self.answer.chunk(self.sent, flow.tokens))
        self.sent = flow.tokens

    def ending(self, flow: Flow) -> bytes:
        """The last events of the stream."""
        said = self.answer.last_chunk(self.sent, flow.tokens, self.finish)
        if self.include_usage:
            said += self.answer.usage_chunk(usage(flow.call.prompt_tokens, flow.tokens, flow.cached_tokens))
        return said + DONE

    def write(self, data: bytes) -> None:
        """Put `data` on the wire, framed as the response's headers promise."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data)

    async def run(self, headers: dict[str, str]) -> web.StreamResponse:
        """Send the headers, then whatever comes, to the end."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **headers})
        if self.chunked:
            response.enable_chunked_encoding()
        else:
            response.force_close()  # the end of the connection is the end of the answer
        await response.prepare(self.request)
        self.prepared = True
        self.on_tokens()
        await self.over
        await response.write_eof()
        return response


class FaultyStream(Stream):
    """A stream that goes wrong as told."""

    def __init__(self, request: web.Request, answer: Answer, finish: str, include_usage: bool, faults: Faults) -> None:
        super().__init__(request, answer, finish, include_usage)
        self.faults = faults
        self.stopped = False

    def send(self, flow: Flow) -> None:
        """As Stream.send, up to where the fault lies."""
        limit = self.limit()
        if self.stopped:
            return
        if limit is None or flow.tokens < limit:
            super().send(flow)
            return
        if limit > self.sent:
            self.write((self.answer.opening() if self.sent == 0 else b"") + self.answer.chunk(self.sent, limit))
        self.stopped = True
        self.go_wrong()

    def limit(self) -> int | None:
        """Tokens that still get through."""
        faults = self.faults
        given = [n for n in (faults.stall_after, faults.cut_after, faults.error_after) if n is not None]
        return min(given) if given else None

    def go_wrong(self) -> None:
        """The fault whose moment has come."""
        limit = self.limit()
        if self.faults.cut_after == limit:
            self.over.get_loop().call_later(FLUSH_S, reset, self.transport)
        elif self.faults.error_after == limit:
            told = {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}
            self.write(b"data: " + orjson.dumps({"error": told}) + b"\n\n" + DONE)
            self.over.set_result(None)

    def write(self, data: bytes) -> None:
        """As Stream.write, with what a fault adds."""
        if self.faults.keep_alive:
            data = KEEP_ALIVE + data
        if self.faults.malformed_sse and self.sent > 0:
            data = BROKEN + data
        super().write(data)


def reset(transport: Any) -> None:
    """Drop a connection so that the other side sees it reset, not ended."""
    if transport is None or transport.is_closing():
        return
    own: Any = transport.get_extra_info("socket")
    with socket.socket(
        fileno=socket.dup(own.fileno())
    ) as same:  # uvloop's own object takes no options, and its transports are of no class of asyncio's
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
