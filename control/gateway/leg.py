"""One POST to a server."""

import time
from typing import TYPE_CHECKING, Any

import aiohttp

from control.gateway.call import Call, LegFailedError
from control.gateway.upstream import Fault, Upstream, fault_of

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway


MOST_ANSWER = 32 * 2**20  # bytes of an answer that is not streamed


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
        try:
            self.response: aiohttp.ClientResponse = await self.gateway.post(call, upstream, self.body)
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


async def read(upstream: Upstream, response: aiohttp.ClientResponse) -> bytes:
    """A whole body.

    Raises:
        LegFailedError: it breaks off.
    """
    try:
        if (response.content_length or MOST_ANSWER) < MOST_ANSWER:
            return await response.read()
        said = bytearray()
        async for part in response.content.iter_any():
            said += part
            if len(said) > MOST_ANSWER:
                raise LegFailedError(Fault.SICK, f"{upstream.spec.name} answered with more than {MOST_ANSWER:,} bytes")
        return bytes(said)
    except (aiohttp.ClientError, ConnectionError) as error:
        reason = f"{upstream.spec.name} broke off: {error or type(error).__name__}"
        raise LegFailedError(Fault.SICK, reason) from error


def check(status: int, body: bytes) -> None:
    """Raise LegFailedError where a response is no answer."""
    fault = fault_of(status, body)
    if fault is not None:
        raise LegFailedError(fault, f"{status} {body[:200].decode(errors='replace')}", status, body)
