"""Before the click: what would be lost if an instance failed now, and how long a drain would take."""

from typing import Any

import numpy as np
import numpy.typing as npt

from control.engine.state import Live
from control.metrics.stages import UNDER_WAY
from control.policy.codes import ACTIVE, DECODE, DOWN, PREFILL, WAITING
from control.policy.tables import Ints

Row = dict[str, Any]


def forecasts(live: Live) -> dict[str, Row]:
    """By instance: calls, conversations and KV there, tokens to compute again, deadlines at risk, drain time.

    A call is begun anew elsewhere after a kill, so its workflow is at risk where less time is left to its deadline than
    it has already spent there plus its estimated execution.
    """
    world, now_s = live.world, live.now_s
    calls = world.calls
    open_rows = np.flatnonzero(np.isin(calls["state"], UNDER_WAY))
    owner = calls["workflow"][open_rows]
    deadline_s = world.workflows["arrival_s"][owner] + world.workflows["slo_s"][owner]
    again_s = np.where(calls["placed_s"][open_rows] >= 0, now_s - calls["placed_s"][open_rows], 0.0)
    left_s = deadline_s - now_s
    in_time = left_s > calls["t_comp_s"][open_rows]
    at_risk = in_time & (left_s < calls["t_comp_s"][open_rows] + again_s)
    counts = counted(live, open_rows, at_risk)
    return {
        spec.name: {name: int(values[i]) for name, values in counts.items()}
        | {"drain_s": drain_s(row["queued_work_s"], row["max_num_seqs"], int(counts["running"][i]))}
        for i, (spec, row) in enumerate(zip(live.fleet.instances, world.instances, strict=True))
        if row["state"] != DOWN
    }


def counted(live: Live, open_rows: Ints, at_risk: npt.NDArray[np.bool_]) -> dict[str, Ints]:
    """Counts and tokens by instance [n], all instances at once: a fleet may have a thousand."""
    calls, n = live.world.calls, len(live.world.instances)
    mine = open_rows[calls["instance"][open_rows] >= 0]
    where, states = calls["instance"][mine], calls["state"][mine]
    running = np.isin(states, (PREFILL, DECODE))
    held, owed = calls["kv"][mine], calls["kv"][mine] + calls["emitted"][mine]
    risky = open_rows[at_risk & (calls["instance"][open_rows] >= 0)]
    pairs = np.unique(np.stack([calls["instance"][risky], calls["workflow"][risky]]), axis=1)
    idle = idle_tokens_by_instance(live)
    return {
        "running": np.bincount(where[running], minlength=n),
        "waiting": np.bincount(where[states == WAITING], minlength=n),
        "conversations": live.world.instances["pinned"],
        "kv_tokens": idle + np.bincount(where[running], held[running], n).astype(np.int64),
        "recompute_tokens": idle + np.bincount(where[running], owed[running], n).astype(np.int64),
        "deadlines_at_risk": np.bincount(pairs[0], minlength=n),
    }


def idle_tokens_by_instance(live: Live) -> Ints:
    """KV tokens of idle conversations pinned to each instance [n]."""
    pins = live.world.pins
    alive = live.world.workflows["state"][pins["workflow"]] == ACTIVE
    pinned = pins[(pins["instance"] >= 0) & alive & (pins["last_s"] >= 0.0)]
    tokens = np.zeros(len(live.world.instances), np.int64)
    np.add.at(tokens, pinned["instance"], pinned["tokens"])
    return tokens


def drain_s(queued_work_s: float, seats: int, running: int) -> float | None:
    """About how long what is there takes to end, s: its estimated work over the seats it takes side by side.

    None where nothing is there. Conversations may come back later: their tools take what they take.
    """
    if queued_work_s <= 0.0:
        return None
    side_by_side: float = max(1, min(int(seats), running))
    return float(queued_work_s) / side_by_side
