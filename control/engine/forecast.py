"""Before the click: what would be lost if an instance failed now, and how long a drain would take."""

from typing import Any

import numpy as np

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
    idle_tokens = idle_tokens_by_instance(live)
    return {
        spec.name: forecast(live, i, open_rows, at_risk, int(idle_tokens[i]))
        for i, spec in enumerate(live.fleet.instances)
        if world.instances[i]["state"] != DOWN
    }


def idle_tokens_by_instance(live: Live) -> Ints:
    """KV tokens of idle conversations pinned to each instance [n]."""
    pins = live.world.pins
    alive = live.world.workflows["state"][pins["workflow"]] == ACTIVE
    pinned = pins[(pins["instance"] >= 0) & alive & (pins["last_s"] >= 0.0)]
    tokens = np.zeros(len(live.world.instances), np.int64)
    np.add.at(tokens, pinned["instance"], pinned["tokens"])
    return tokens


def forecast(live: Live, i: int, open_rows: Any, at_risk: Any, idle_tokens: int) -> Row:
    """One instance."""
    calls, row = live.world.calls, live.world.instances[i]
    here = calls["instance"][open_rows] == i
    mine = open_rows[here]
    states = calls["state"][mine]
    running = mine[np.isin(states, (PREFILL, DECODE))]
    held = int(calls["kv"][running].sum())
    return {
        "running": len(running),
        "waiting": int((states == WAITING).sum()),
        "conversations": int(row["pinned"]),
        "kv_tokens": held + idle_tokens,
        "recompute_tokens": int((calls["kv"][running] + calls["emitted"][running]).sum()) + idle_tokens,
        "deadlines_at_risk": len(np.unique(calls["workflow"][mine[at_risk[here]]])),
        "drain_s": drain_s(row["queued_work_s"], row["max_num_seqs"], len(running)),
    }


def drain_s(queued_work_s: float, seats: int, running: int) -> float | None:
    """About how long what is there takes to end, s: its estimated work over the seats it takes side by side.

    None where nothing is there. Conversations may come back later: their tools take what they take.
    """
    if queued_work_s <= 0.0:
        return None
    side_by_side: float = max(1, min(int(seats), running))
    return float(queued_work_s) / side_by_side
