"""One request from the client's first byte to the last: in at the door, to a server, back, and out in one place.

    enter -> wait for a seat -> [prefill leg -> wait for a decoder] -> answer -> end

A server that fails before the first byte costs a detour, at most REROUTES of them; after it the client gets an error
event. Whatever happens, `finish` tells the door, once.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import web

from control.engine.door import Identity, Order
from control.gateway.openai import (
    Ask,
    Stream,
    Usage,
    answer_leg,
    collect_leg,
    error_body,
    error_event,
    prefill_leg,
    usage_of,
)
from control.gateway.predict import Prediction
from control.gateway.upstream import Fault, Upstream, fault_of
from control.policy.codes import (
    ALL_FULL,
    BY_CLIENT,
    CALL_ENDED,
    CANCELLED,
    CAUSES,
    COMPLETED,
    DISPATCHED,
    FAILED,
    NO_CAUSE,
    REJECTED,
    SERVER_LOST,
    STALLED,
    TOO_LONG,
)

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway

UNKNOWN = Usage()
REROUTES = 3  # other servers tried before the first byte
GIVEN_UP = "the workflow was given up by an operator"
PASSED_ON = ("authorization", "traceparent", "tracestate", "x-session-id", "baggage")
BACK = ("content-type", "x-request-id", "traceparent")


class LegFailedError(Exception):
    """A server failed a call before the first byte of its answer went out."""

    def __init__(self, fault: Fault, reason: str, status: int = 502, body: bytes = b"", stalled: bool = False) -> None:
        super().__init__(reason)
        self.fault, self.status, self.body, self.stalled = fault, status, body, stalled


@dataclass(eq=False)
class Call:
    """A request under way."""

    request: web.BaseRequest
    ask: Ask
    who: Identity
    request_id: str
    uid: int = 0
    orders: asyncio.Queue[Order] | None = None
    ready: list[Order] = field(default_factory=list)  # orders that came before anybody waited
    tried: list[int] = field(default_factory=list)
    instance: int = -1  # the server that has it, -1: none
    begun_s: float = 0.0
    sent_s: float = 0.0  # monotonic time its latest leg was sent
    prediction: Prediction | None = None  # made then
    last_s: float = 0.0  # monotonic time of the last sign of life of its server; 0: none is awaited
    first_s: float = 0.0  # monotonic time of the first token
    stalled: bool = False  # it was cancelled because of that
    given_up: bool = False  # it was cancelled by an operator
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


class Relay:
    """Carries requests through the door, to servers and back."""

    def __init__(self, gateway: "Gateway") -> None:
        self.gateway = gateway

    async def serve(self, call: Call) -> web.StreamResponse:
        """The response to one request, whatever becomes of it."""
        call.task = asyncio.current_task()
        self.gateway.enter(call)
        try:
            while True:
                order = await call.next_order()
                if order.kind == CALL_ENDED:
                    return self.refused(call, order.cause)
                if order.kind != DISPATCHED:
                    return await self.gateway.local.answer(call, order)
                try:
                    if order.is_prefill:
                        await self.prefill(call, order.instance)
                    else:
                        return await self.answer(call, order.instance)
                except LegFailedError as failure:
                    response = self.after(call, failure)
                except asyncio.CancelledError:
                    if not call.stalled or call.response is not None or call.task is None:
                        raise
                    call.task.uncancel()
                    call.stalled = False
                    reason = "the server has sent nothing for too long"
                    response = self.after(call, LegFailedError(Fault.SICK, reason, 504, stalled=True))
                if response is not None:
                    return response
        except asyncio.CancelledError:
            if call.given_up:
                call.state, call.cause = CANCELLED, BY_CLIENT
                return await self.broken_off(call, GIVEN_UP, 499)
            if call.stalled:
                call.state, call.cause = FAILED, STALLED
                return await self.broken_off(call, "the server has sent nothing for too long", 504)
            call.state, call.cause = CANCELLED, BY_CLIENT
            raise
        finally:
            self.gateway.finish(call)

    def refused(self, call: Call, cause: int) -> web.Response:
        """No server may take the call, or an operator gave it up."""
        call.instance = -1
        if cause == TOO_LONG:
            reason = f"the context is longer than any server takes ({self.gateway.longest} tokens)"
            return problem(400, reason, "invalid_request_error")
        if cause == BY_CLIENT:
            return problem(499, GIVEN_UP, "cancelled")
        reason = f"no server can take the call now ({CAUSES[cause]})"
        return problem(503, reason, "service_unavailable", retry_after_s=2)

    def after(self, call: Call, failure: LegFailedError) -> web.Response | None:
        """What follows a leg that failed before the first byte: None where the call goes to another server."""
        upstream = self.gateway.upstreams[call.instance]
        self.gateway.note_fault(upstream, failure)
        if failure.fault is Fault.CLIENT:
            call.state, call.cause = FAILED, REJECTED
            return web.Response(status=failure.status, body=failure.body, content_type="application/json")
        call.tried.append(call.instance)
        call.kv = None
        if len(call.tried) <= REROUTES:
            call.instance = -1
            self.gateway.deliver(self.gateway.door.again(call.uid, call.tried))
            return None
        if failure.fault is Fault.FULL:
            call.state, call.cause = FAILED, ALL_FULL
            return problem(503, f"every server tried is full: {failure}", "overloaded", retry_after_s=2)
        call.state, call.cause = FAILED, STALLED if failure.stalled else SERVER_LOST
        return problem(502, f"{len(call.tried)} servers failed, the last with: {failure}", "server_error")

    async def prefill(self, call: Call, i: int) -> None:
        """The prefill leg: its answer is an opaque object that goes to the decoder."""
        upstream = self.gateway.upstreams[i]
        body = prefill_leg(call.ask, upstream.served_model or call.ask.model)
        async with self.sent(call, upstream, body) as response:
            raw = await self.read(upstream, response)
            self.check(response.status, raw)
            call.kv = orjson.loads(raw).get("kv_transfer_params") if raw.startswith(b"{") else None
        if not call.kv:
            raise LegFailedError(Fault.SICK, f"{upstream.spec.name} gave no kv_transfer_params")
        upstream.answered()
        call.last_s, call.kv_at_s = 0.0, time.monotonic()
        call.instance = -1
        self.gateway.deliver(self.gateway.door.prefilled(call.uid))

    async def answer(self, call: Call, i: int) -> web.StreamResponse:
        """The whole answer, or its decode leg, passed on as it comes."""
        upstream = self.gateway.upstreams[i]
        body = answer_leg(call.ask, upstream.served_model or call.ask.model, call.kv)
        async with self.sent(call, upstream, body) as response:
            if call.kv is not None:
                self.gateway.note_hand_over(call)
                call.kv = None
            self.gateway.note_load(upstream, response.headers)
            if response.status >= 400:
                self.check(response.status, await self.read(upstream, response))
            if not call.ask.stream or not response.headers.get("content-type", "").startswith("text/event-stream"):
                return await self.whole(call, upstream, response)
            return await self.streamed(call, upstream, response)

    async def read(self, upstream: Upstream, response: aiohttp.ClientResponse) -> bytes:
        """A whole body; LegFailedError where it breaks off."""
        try:
            return await response.read()
        except (aiohttp.ClientError, ConnectionError) as error:
            reason = f"{upstream.spec.name} broke off: {error or type(error).__name__}"
            raise LegFailedError(Fault.SICK, reason) from error

    def check(self, status: int, body: bytes) -> None:
        """Raise LegFailedError where a response is no answer."""
        fault = fault_of(status, body)
        if fault is not None:
            raise LegFailedError(fault, f"{status} {body[:200].decode(errors='replace')}", status, body)

    def sent(self, call: Call, upstream: Upstream, body: bytes) -> "Leg":
        """A leg to be entered."""
        return Leg(self.gateway, call, upstream, body)

    async def whole(self, call: Call, upstream: Upstream, response: aiohttp.ClientResponse) -> web.Response:
        """An answer that is not streamed."""
        raw = await self.read(upstream, response)
        call.first_s = call.first_s or time.monotonic()
        try:
            call.usage = usage_of(orjson.loads(raw))
        except orjson.JSONDecodeError as error:
            raise LegFailedError(Fault.SICK, f"{upstream.spec.name} answered with what is not JSON") from error
        upstream.answered()
        call.state, call.cause = COMPLETED, NO_CAUSE
        return web.Response(body=raw, headers=self.head(call, upstream, response.headers))

    async def streamed(self, call: Call, upstream: Upstream, response: aiohttp.ClientResponse) -> web.StreamResponse:
        """A streamed answer; its head goes out with the first event: a failure before it costs only a detour."""
        stream = call.stream = Stream(call.ask.wants_usage)
        out, content = None, response.content
        try:
            while True:
                data = await content.readany()
                if not data:
                    break
                call.last_s = time.monotonic()
                whole = stream.feed(data)
                if stream.events and not call.first_s:
                    call.first_s = call.last_s
                    self.gateway.door.first_token(call.uid)
                if not whole:
                    continue
                if out is None:
                    out = await self.open_stream(call, upstream, response.headers)
                await out.write(whole)
        except (aiohttp.ClientError, ConnectionError) as error:
            if isinstance(error, ConnectionResetError) and call.request.transport is None:
                call.state, call.cause = CANCELLED, BY_CLIENT
                return out or web.Response(status=499)
            return await self.lost(call, upstream, f"{upstream.spec.name} broke off: {error or type(error).__name__}")
        call.usage = stream.usage
        if stream.error is not None:
            self.gateway.note_fault(upstream, LegFailedError(Fault.SICK, stream.error))
            call.state, call.cause = FAILED, SERVER_LOST
        elif not stream.is_done:
            return await self.lost(call, upstream, f"{upstream.spec.name} ended the stream before its end")
        else:
            upstream.answered()
            call.state, call.cause = COMPLETED, NO_CAUSE
        if out is None:
            out = await self.open_stream(call, upstream, response.headers)
        await out.write_eof()
        return out

    async def lost(self, call: Call, upstream: Upstream, reason: str) -> web.StreamResponse:
        """A stream broke off: before the first byte it is sent elsewhere, after it the client is told."""
        failure = LegFailedError(Fault.SICK, reason)
        if call.response is None:
            raise failure
        self.gateway.note_fault(upstream, failure)
        call.state, call.cause = FAILED, SERVER_LOST
        return await self.broken_off(call, reason, 502)

    async def broken_off(self, call: Call, reason: str, status: int) -> web.StreamResponse:
        """Tell the client in its stream, where it has begun, that nothing more will come."""
        if call.response is None:
            return problem(status, reason, "server_error")
        try:
            await call.response.write(error_event(reason, "server_error", status))
            await call.response.write_eof()
        except ConnectionError:
            pass
        return call.response

    async def open_stream(self, call: Call, upstream: Upstream, headers: Mapping[str, str]) -> web.StreamResponse:
        """Send the head of a streamed response."""
        out = web.StreamResponse(headers=self.head(call, upstream, headers))
        await out.prepare(call.request)
        call.response = out
        return out

    def head(self, call: Call, upstream: Upstream, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers of a response: some of the server's, and who answered."""
        kept = {name: headers[name] for name in BACK if name in headers}
        return kept | {"x-request-id": call.request_id, "x-headway-instance": upstream.spec.name}

    def abandon_kv(self, call: Call) -> None:
        """The client left between the legs: fetch the KV nobody wants, so that the prefiller lets go of it."""
        decoders = [one for one in self.gateway.upstreams.values() if one.spec.role == "decode"]
        if call.kv is not None and decoders:
            upstream = decoders[call.uid % len(decoders)]
            body = collect_leg(call.ask, upstream.served_model or call.ask.model, call.kv)
            self.gateway.keep(self.collect(call, upstream, body))

    async def collect(self, call: Call, upstream: Upstream, body: bytes) -> None:
        """Run a decode leg for its own sake."""
        try:
            async with self.gateway.session.post(
                upstream.base + call.request.path, data=body, headers=self.gateway.headers(call, upstream)
            ) as response:
                await response.read()
        except aiohttp.ClientError:
            pass  # its lease runs out


class Leg:
    """A POST to a server; failures to reach it are LegFailedError."""

    def __init__(self, gateway: "Gateway", call: Call, upstream: Upstream, body: bytes) -> None:
        self.gateway, self.call, self.upstream, self.body = gateway, call, upstream, body

    async def __aenter__(self) -> aiohttp.ClientResponse:
        """The response's head."""
        call, upstream = self.call, self.upstream
        call.instance = upstream.row
        call.last_s = call.sent_s = time.monotonic()
        upstream.sent += 1
        if call.kv is None:
            call.prediction = self.gateway.watcher.predict(call, upstream.row)
        try:
            self.response: aiohttp.ClientResponse = await self.gateway.session.post(
                upstream.base + call.request.path, data=self.body, headers=self.gateway.headers(call, upstream)
            )
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            reason = f"{upstream.spec.name} cannot be reached: {error or type(error).__name__}"
            raise LegFailedError(Fault.SICK, reason) from error
        return self.response

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Let the connection go: back to the pool if the answer is complete, else closed, which cancels the call."""
        self.call.last_s = 0.0
        if kind is None and self.response.content.at_eof():
            self.response.release()
        else:
            self.response.close()


def problem(status: int, message: str, kind: str, retry_after_s: int | None = None) -> web.Response:
    """An error response that OpenAI's clients read."""
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    body = orjson.dumps(error_body(message, kind, status))
    return web.Response(status=status, body=body, headers=headers | {"content-type": "application/json"})
