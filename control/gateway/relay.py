"""One request from the client's first byte to the last: in at the door, to a server, back, and out in one place.

    enter -> wait for a seat -> [prefill leg -> wait for a decoder] -> answer -> end

A server that fails before anything of its answer went out costs a detour, at most REROUTES of them; after that the
client gets an error event. Whatever happens, `finish` tells the door, once.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from aiohttp import web

from control.engine.tickets import Order
from control.gateway.call import Broken, Call, ClientGoneError, LegFailedError
from control.gateway.handover import abandon_kv, note_hand_over
from control.gateway.leg import Leg, check, read
from control.gateway.openai import BadRequestError, Stream, TooLongError, answer_leg, prefill_leg, usage_of
from control.gateway.replies import problem
from control.gateway.upstream import Fault, Upstream
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
    RESTARTED,
    SERVER_LOST,
    STALLED,
    TOO_LONG,
)

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway

log = logging.getLogger("headway.gateway")

REROUTES = 3  # other servers tried before the first byte
GOODBYE_S = 1.0  # s that a client has to take an error event
BACK = ("content-type", "x-request-id", "traceparent")
ENDS = {
    Broken.STALLED: (FAILED, STALLED),
    Broken.GIVEN_UP: (CANCELLED, BY_CLIENT),
    Broken.UNREAD: (CANCELLED, BY_CLIENT),
    Broken.STOPPING: (FAILED, RESTARTED),
}


class Relay:
    """Carries requests through the door, to servers and back."""

    def __init__(self, gateway: "Gateway") -> None:
        self.gateway = gateway

    async def serve(self, call: Call) -> web.StreamResponse:
        """The response to one request, whatever becomes of it."""
        call.task = asyncio.current_task()
        try:
            self.gateway.enter(call)
            return await self.carry(call)
        except asyncio.CancelledError:
            if call.why is None:
                call.client_left()
                raise
            return await self.broken_here(call, call.why)
        except ClientGoneError:
            call.client_left()
            return call.response or web.Response(status=499)
        except BadRequestError as error:
            call.state, call.cause = FAILED, REJECTED
            return await self.reply(call, problem(400, str(error), "invalid_request_error"))
        except Exception:  # a defect of ours ends in an answer and a line in the log, never in a hung client
            log.exception("request %s failed in the gateway", call.request_id)
            call.state, call.cause = FAILED, SERVER_LOST
            return await self.broken_off(call, f"the gateway failed (request {call.request_id})", 500)
        finally:
            self.gateway.finish(call)

    async def carry(self, call: Call) -> web.StreamResponse:
        """Follow the door's orders to the end of the call."""
        while True:
            order = await call.next_order()
            if order.kind == CALL_ENDED:
                return await self.refused(call, order.cause)
            try:
                response = await self.step(call, order)
            except LegFailedError as failure:
                response = await self.after(call, failure)
            except asyncio.CancelledError:
                if call.why is not Broken.STALLED or call.said or call.request.transport is None or call.task is None:
                    raise
                call.task.uncancel()
                call.why = None
                response = await self.after(call, LegFailedError(Fault.SICK, *Broken.STALLED.value, stalled=True))
            if response is not None:
                return response

    async def step(self, call: Call, order: Order) -> web.StreamResponse | None:
        """One order; None: another will follow."""
        if order.kind != DISPATCHED:
            return await self.gateway.local.answer(call, order)
        if order.is_prefill:
            await self.prefill(call, self.gateway.upstreams[order.instance])
            return None
        return await self.answer(call, self.gateway.upstreams[order.instance])

    # ---- legs

    async def prefill(self, call: Call, upstream: Upstream) -> None:
        """The prefill leg: its answer is an opaque object that goes to the decoder."""
        body = prefill_leg(call.ask, upstream.served_model or call.ask.model)
        async with Leg(self.gateway, call, upstream, body) as response:
            raw = await read(upstream, response)
            check(response.status, raw)
            told = parsed(raw)
            call.kv = told.get("kv_transfer_params") if isinstance(told, dict) else None
        if not isinstance(call.kv, dict) or not call.kv:
            call.kv = None
            raise LegFailedError(Fault.SICK, f"{upstream.spec.name} gave no kv_transfer_params")
        upstream.answered()
        call.last_s, call.kv_at_s = 0.0, time.monotonic()
        call.instance = -1
        self.gateway.deliver(self.gateway.door.prefilled(call.uid))

    async def answer(self, call: Call, upstream: Upstream) -> web.StreamResponse:
        """The whole answer, or its decode leg, passed on as it comes."""
        body = answer_leg(call.ask, upstream.served_model or call.ask.model, call.kv)
        async with Leg(self.gateway, call, upstream, body) as response:
            self.gateway.note_load(upstream, response.headers)
            if response.status >= 400:
                check(response.status, await read(upstream, response))
            if call.kv is not None:
                note_hand_over(self.gateway, call)
                call.kv = None
            if not call.ask.stream or not response.headers.get("content-type", "").startswith("text/event-stream"):
                return await self.whole(call, upstream, response)
            return await self.streamed(call, upstream, response)

    async def whole(self, call: Call, upstream: Upstream, response: aiohttp.ClientResponse) -> web.StreamResponse:
        """An answer in one piece; a server may give one where a stream was asked for."""
        raw = await read(upstream, response)
        call.first_s = call.first_s or time.monotonic()
        told = parsed(raw)
        if not isinstance(told, dict):
            raise LegFailedError(Fault.SICK, f"{upstream.spec.name} answered with what is no JSON object")
        if told.get("error") and "choices" not in told:
            raise LegFailedError(Fault.SICK, f"{upstream.spec.name} answered with an error: {told['error']!r:.200}")
        call.usage = usage_of(told)
        upstream.answered()
        call.state, call.cause = COMPLETED, NO_CAUSE
        return await self.reply(call, web.Response(body=raw, headers=self.head(call, upstream, response.headers)))

    async def streamed(self, call: Call, upstream: Upstream, response: aiohttp.ClientResponse) -> web.StreamResponse:
        """A streamed answer; its head goes out with the first events: a failure before them costs only a detour."""
        stream = call.stream = Stream(call.ask.wants_usage)
        content, head = response.content, self.head(call, upstream, response.headers)
        while True:
            try:
                data = await content.readany()
            except (aiohttp.ClientError, ConnectionError) as error:
                reason = f"{upstream.spec.name} broke off: {error or type(error).__name__}"
                return await self.lost(call, upstream, reason)
            call.last_s = time.monotonic()
            try:
                whole = stream.feed(data) if data else stream.rest_of_it()
            except TooLongError as error:
                return await self.lost(call, upstream, f"{upstream.spec.name} sent {error}")
            if stream.events and not call.first_s:
                call.first_s = call.last_s  # the sweep tells the door, or the end does
            if whole:
                call.said = call.said or stream.said
                if call.response is None:
                    await call.open(head)
                await call.write(whole)
            if not data:
                return await self.over(call, upstream, stream)

    async def over(self, call: Call, upstream: Upstream, stream: Stream) -> web.StreamResponse:
        """A stream has come to its end, which may be no good one."""
        call.usage = stream.usage
        if stream.error is not None:
            self.gateway.note_fault(upstream, LegFailedError(Fault.SICK, stream.error))
            call.state, call.cause = FAILED, SERVER_LOST
        elif not stream.is_done:
            return await self.lost(call, upstream, f"{upstream.spec.name} ended the stream before its end")
        else:
            upstream.answered()
            call.state, call.cause = COMPLETED, NO_CAUSE
        return await call.end()

    async def after(self, call: Call, failure: LegFailedError) -> web.StreamResponse | None:
        """What follows a leg that failed before anything was said: None where the call goes to another server."""
        upstream = self.gateway.upstreams[call.instance]
        self.gateway.note_fault(upstream, failure)
        abandon_kv(self.gateway, call)
        if failure.fault is Fault.CLIENT:
            call.state, call.cause = FAILED, REJECTED
            passed = web.Response(status=failure.status, body=failure.body, content_type="application/json")
            return await self.reply(call, passed)
        call.tried.append(upstream.row)
        call.failure = failure
        if len(call.tried) > REROUTES:
            return await self.reply(call, exhausted(call, failure))
        call.goes_elsewhere()
        self.gateway.totals.reroutes += 1
        self.gateway.deliver(self.gateway.door.again(call.uid, call.tried))
        return None

    async def refused(self, call: Call, cause: int) -> web.StreamResponse:
        """No server may take the call, or an operator gave it up."""
        call.instance = -1
        if cause == TOO_LONG:
            reason = f"the context is longer than any server takes ({self.gateway.longest} tokens)"
            response = problem(400, reason, "invalid_request_error")
        elif cause == BY_CLIENT:
            call.state, call.cause = CANCELLED, BY_CLIENT
            response = problem(499, Broken.GIVEN_UP.value[0], "cancelled")
        elif call.failure is not None:
            response = exhausted(call, call.failure)
        else:
            reason = f"no server can take the call now ({CAUSES[cause]})"
            response = problem(503, reason, "service_unavailable", retry_after_s=2)
        return await self.reply(call, response)

    async def lost(self, call: Call, upstream: Upstream, reason: str) -> web.StreamResponse:
        """A stream broke off: before anything was said it is sent elsewhere, after that the client is told."""
        failure = LegFailedError(Fault.SICK, reason)
        if not call.said:
            raise failure
        self.gateway.note_fault(upstream, failure)
        call.state, call.cause = FAILED, SERVER_LOST
        return await self.broken_off(call, reason, 502)

    async def broken_here(self, call: Call, why: Broken) -> web.StreamResponse:
        """The call was cancelled from here, and its client has a right to know why."""
        reason, status = why.value
        call.state, call.cause = ENDS[why]
        if why is Broken.STALLED and call.instance >= 0:
            failure = LegFailedError(Fault.SICK, reason, stalled=True)
            self.gateway.note_fault(self.gateway.upstreams[call.instance], failure)
        if why is Broken.UNREAD:
            hang_up(call)
        return await self.broken_off(call, reason, status)

    async def broken_off(self, call: Call, reason: str, status: int) -> web.StreamResponse:
        """Tell the client, in its stream where it has begun, that nothing more will come."""
        return await self.reply(call, problem(status, reason, "server_error"))

    async def reply(self, call: Call, response: web.Response) -> web.StreamResponse:
        """The response, or what it says as the last event of the stream that has begun."""
        if call.response is None:
            return response
        assert isinstance(response.body, bytes)
        try:
            async with asyncio.timeout(GOODBYE_S):
                await call.response.write(b"data: " + response.body + b"\n\n")
                await call.response.write_eof()
        except (ConnectionError, TimeoutError):
            hang_up(call)
        return call.response

    def head(self, call: Call, upstream: Upstream, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers of a response: some of the server's, and who answered."""
        kept = {name: headers[name] for name in BACK if name in headers}
        return kept | {"x-request-id": call.request_id, "x-headway-instance": upstream.spec.name}


def exhausted(call: Call, failure: LegFailedError) -> web.Response:
    """The response once no server is left to be tried; the call's end with it."""
    if failure.fault is Fault.FULL:
        call.state, call.cause = FAILED, ALL_FULL
        return problem(503, f"every server tried is full: {failure}", "overloaded", retry_after_s=2)
    call.state, call.cause = FAILED, STALLED if failure.stalled else SERVER_LOST
    told = f"{len(call.tried)} servers failed, the last with: {failure}"
    return problem(504 if failure.stalled else 502, told, "server_error")


def hang_up(call: Call) -> None:
    """Drop the connection of a client that does not read."""
    if call.request.transport is not None:
        call.request.transport.abort()


def parsed(raw: bytes) -> Any:
    """A JSON body; None for what is none."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
