"""KV that a prefiller keeps for a decoder: handed on, timed, and fetched where nobody wants it any more."""

import asyncio
import time
from typing import TYPE_CHECKING

import aiohttp

from control.gateway.call import Call
from control.gateway.openai import collect_leg
from control.gateway.upstream import Health, Upstream

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway


def note_hand_over(gateway: "Gateway", call: Call) -> None:
    """The decode leg has begun to answer: the prefiller's KV was fetched, in time or not."""
    taken_s = time.monotonic() - call.kv_at_s
    gateway.totals.hand_overs += 1
    gateway.totals.hand_over_s += taken_s
    if taken_s > gateway.settings.lease_s:
        gateway.totals.late_hand_overs += 1
        told = f"KV was fetched {taken_s:.1f} s after its prefill, past its lease"
        gateway.door.notes.append(("late_hand_over", told))


def abandon_kv(gateway: "Gateway", call: Call) -> None:
    """Nobody will decode from the KV that a prefiller keeps: have it fetched, so that the prefiller lets go of it."""
    transfer, call.kv = call.kv, None
    decoders = [
        one
        for one in gateway.upstreams.values()
        if one.spec.role != "prefill" and one.health is Health.READY and one.row != call.instance
    ]
    if transfer is None or not decoders:
        return  # its lease runs out
    upstream = decoders[call.key % len(decoders)]
    body = collect_leg(call.ask, upstream.served_model or call.ask.model, transfer)
    gateway.keep(collect(gateway, call, upstream, body))


async def collect(gateway: "Gateway", call: Call, upstream: Upstream, body: bytes) -> None:
    """Run a decode leg for its own sake, for as long as the KV is kept."""
    try:
        async with asyncio.timeout(gateway.settings.lease_s), await gateway.post(call, upstream, body) as response:
            await response.read()
    except (aiohttp.ClientError, ConnectionError, TimeoutError):
        pass  # its lease runs out
