"""The live state of real servers as it is taken up, looked at, and corrected by what servers say of themselves."""

import copy

import numpy as np

from control.engine.state import Live
from control.engine.tickets import numbers
from control.metrics.stages import UNDER_WAY
from control.policy import codes
from control.policy.codes import DECODE, PREFILL
from control.twin.acts import NOTHING, act
from control.twin.world import World, fork, silent


def still_life(live: Live) -> Live:
    """A copy that stands still; its journal, which must have been drained, is left out."""
    copied = copy.copy(live)
    copied.world, copied.streams = fork(silent(live.world)), live.streams.copy()
    # the thread of requests changes these while the copy is written up
    copied.flows, copied.observed = dict(live.flows), dict(live.observed)
    copied.counted, copied.broken = list(live.counted), dict(live.broken)
    return copied


def is_at_server(world: World, c: int) -> bool:
    """Whether a real server has call `c`, as opposed to its waiting here, or being on its way."""
    call = world.calls[c]
    return int(call["state"]) in (PREFILL, DECODE) and bool(world.instances[call["instance"]]["remote"] == 1)


def break_off(live: Live) -> None:
    """End the calls that an earlier process had: their clients' connections went with it."""
    world = live.world
    world.instances["remote"] = [spec.url is not None for spec in live.fleet.instances]
    still_open = np.flatnonzero(np.isin(world.calls["state"], UNDER_WAY)).tolist()
    for c in sorted(still_open, key=lambda c: is_at_server(world, c)):  # who waits first, or it would be sent
        if is_at_server(world, c):
            act(world, codes.ANSWERED, c, 0, numbers(codes.FAILED, codes.RESTARTED))
            continue
        act(world, codes.ABANDON, c, 0, NOTHING)
        if world.calls[c]["state"] == codes.CANCELLED:
            world.calls[c]["state"], world.calls[c]["cause"] = codes.FAILED, codes.RESTARTED


def take_capacity(live: Live, i: int, kv_tokens: float | None) -> str:
    """Let the books go by the room for KV, tokens, that real server `i` says it has; what changed, in words.

    A capacity in the fleet file stands, and so does what is held already: the books shrink once that has gone.
    """
    row, spec = live.world.instances[i], live.fleet.instances[i]
    size = int(row["block_size"])
    blocks = 0 if kv_tokens is None else int(kv_tokens) // size
    more = blocks - int(row["blocks"])
    if blocks < 1 or more == 0 or spec.kv_tokens is not None or int(row["free"]) + more < 0:
        return ""
    row["blocks"], row["free"] = blocks, int(row["free"]) + more
    row["watermark"] = int(spec.watermark * blocks)
    row["max_model_len"] = min(int(row["max_model_len"]), blocks * size)
    return f"{spec.name} has room for {blocks * size:,} tokens of KV"
