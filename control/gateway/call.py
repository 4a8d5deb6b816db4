"""A request under way, as everything that carries it knows it."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web

from control.engine.tickets import Identity, Order
from control.gateway.openai import Ask, Stream, Usage
from control.gateway.upstream import Fault
from control.policy.codes import BY_CLIENT, CANCELLED, COMPLETED, FAILED, NO_CAUSE, SERVER_LOST

UNKNOWN = Usage()


class Broken(Enum):
    """Why a call was broken off from here: what its client is told, and the status."""

    STALLED = ("the server has sent nothing for too long", 504)
    GIVEN_UP = ("the workflow was given up by an operator", 499)
    UNREAD = ("the client does not read its answer", 408)
    STOPPING = ("the gateway is shutting down", 503)


class ClientGoneError(Exception):
    """Nobody takes what is written any more."""


class LegFailedError(Exception):
    """A server failed a call before the first byte of its answer went out."""

    def __init__(self, fault: Fault, reason: str, status: int = 502, body: bytes = b"", stalled: bool = False) -> None:
        super().__init__(reason)
        self.fault, self.status, self.body, self.stalled = fault, status, body, stalled


@dataclass(eq=False)
class Call:
    """A request under way. Times are monotonic, s; 0: not yet."""

    request: web.BaseRequest
    ask: Ask
    who: Identity
    request_id: str
    key: int = 0  # its number at the door, for good
    uid: int = 0  # the same while the door knows it, else 0
    orders: asyncio.Queue[Order] | None = None
    ready: list[Order] = field(default_factory=list)  # orders that came before anybody waited
    tried: list[int] = field(default_factory=list)
    failure: LegFailedError | None = None  # of the last server tried
    instance: int = -1  # the server that has it, -1: none
    begun_s: float = 0.0
    sent_s: float = 0.0  # its latest leg was sent
    last_s: float = 0.0  # the last sign of life of its server; 0: none is awaited
    first_s: float = 0.0  # the first token
    writing_s: float = 0.0  # the client has been written to since; 0: it is not
    why: Broken | None = None  # it was cancelled from here
    kv: Any = None  # what the prefill leg gave, to be handed on as it is
    kv_at_s: float = 0.0
    stream: Stream | None = None
    response: web.StreamResponse | None = None  # once its head went out
    task: asyncio.Task[Any] | None = None
    state: int = FAILED
    cause: int = SERVER_LOST
    usage: Usage = UNKNOWN
    planned: int = 0  # tokens that a simulated instance will generate
    tokens: int = 0  # and has generated
    said: bool = False  # part of an answer went out: no other server can take over

    async def next_order(self) -> Order:
        """What is to be done next: be sent, or end."""
        if self.ready:
            return self.ready.pop(0)
        if self.orders is None:
            self.orders = asyncio.Queue()
        return await self.orders.get()

    def take(self, order: Order) -> None:
        """An order about this call has come."""
        if self.orders is None:
            self.ready.append(order)
        else:
            self.orders.put_nowait(order)

    def client_left(self) -> None:
        """The client has gone: with all of its answer, or before that."""
        has_all = self.stream is not None and self.stream.is_finished
        self.state, self.cause = (COMPLETED, NO_CAUSE) if has_all else (CANCELLED, BY_CLIENT)

    def since_first_s(self) -> float:
        """Time since the first token, s; 0 before it."""
        return time.monotonic() - self.first_s if self.first_s else 0.0

    def break_off(self, why: Broken) -> None:
        """Cancel it; its task tells the client why."""
        if self.why is None and self.task is not None:
            self.why = why
            self.task.cancel()

    def goes_elsewhere(self) -> None:
        """What came of the last leg counts no more."""
        self.instance, self.stream, self.first_s, self.last_s = -1, None, 0.0, 0.0

    async def open(self, headers: Mapping[str, str]) -> web.StreamResponse:
        """The response, its head sent: once, whoever goes on with it."""
        if self.response is None:
            out = web.StreamResponse(headers=headers)
            try:
                await out.prepare(self.request)
            except ConnectionError as error:
                raise ClientGoneError from error
            self.response = out
        return self.response

    async def write(self, data: bytes) -> None:
        """Send part of the answer; while the client does not read, its server is not the one that is slow.

        Raises:
            ClientGoneError: nobody is there.
        """
        assert self.response is not None
        self.writing_s, last_s, self.last_s = time.monotonic(), self.last_s, 0.0
        try:
            await self.response.write(data)
        except ConnectionError as error:
            raise ClientGoneError from error
        finally:
            self.last_s = time.monotonic() if last_s else 0.0
            self.writing_s = 0.0

    async def end(self) -> web.StreamResponse:
        """End the streamed response.

        Raises:
            ClientGoneError: nobody is there.
        """
        assert self.response is not None
        self.last_s = 0.0
        try:
            await self.response.write_eof()
        except ConnectionError as error:
            raise ClientGoneError from error
        return self.response
