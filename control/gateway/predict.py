"""What a server's profile says of a call that is about to be sent there."""

from typing import NamedTuple

import numpy as np

from control.engine.door import Door
from control.policy.codes import DECODE
from control.policy.cost import chunk_area, decode_run_ms, mixed_ms


class Prediction(NamedTuple):
    """Times of one call from the moment it is sent, s."""

    ttft_s: float
    tpot_s: float


def predict(door: Door, uid: int, i: int) -> Prediction | None:
    """TTFT and TPOT of call `uid` on instance `i` with the calls that it has now; None: the call has gone.

    The prompt is prefilled in chunks of what the token budget leaves beside the decoding calls, then every decoding
    call gains a token an iteration, the batch as it stands.
    """
    with door.lock:
        c, world = door.rows.get(uid), door.live.world
        if c is None:
            return None
        instance, call = world.instances[i], world.calls[c]
        running = world.calls[world.running[i, : instance["n_running"]]]
        decoding = running[(running["state"] == DECODE) & (running["uid"] != uid)]
        b, k = len(decoding), int(decoding["kv"].sum())
        profile, host_ms = int(instance["profile"]), float(instance["host_ms"])
        held, left = int(call["kv"]), int(max(1, call["target"] - call["kv"]))
        budget = max(1, int(instance["max_num_batched_tokens"]) - b)
        ttft_ms = 0.0
        while left > 0:
            p = min(left, budget)
            area = chunk_area(held, p)
            ttft_ms += mixed_ms(world.costs, profile, host_ms, b, k, p, float(held), area)
            held, left, k = held + p, left - p, k + b
        seats = world.costs.decode_ms.shape[2] - 1
        n = 16  # iterations; the cost is linear in the tokens they add
        run_ms = decode_run_ms(world.costs, profile, host_ms, min(b + 1, seats), k + held, n)
        return Prediction(ttft_ms * 1e-3, float(np.float64(run_ms) / n) * 1e-3)
