"""Watts and joules of a live fleet: by instance, by tier, by what they were drawn for."""

from typing import Any

import numpy as np

from control.engine.state import Live
from control.model.fleet import InstanceSpec, profile_of
from control.model.power import cap_bounds
from control.policy.codes import DECODING, IDLE, INSTANCE_STATES
from control.policy.tables import Floats, Table

Row = dict[str, Any]
SHARES = ("prefill_j", "decode_j", "idle_j")


def shares_j(live: Live, views: Table) -> Floats:
    """J drawn so far by instance for prefill, decode and idling [n, 3]; they sum to all that was drawn."""
    rows = live.world.instances
    open_j = views["energy_j"] - rows["energy_j"]
    idle_j = rows["idle_j"] + np.where(rows["run"] == IDLE, open_j, 0.0)
    mixed = (rows["run"] != IDLE) & (rows["run"] != DECODING)
    prefill_j = rows["prefill_j"] + np.where(mixed, open_j, 0.0)
    return np.stack([prefill_j, np.maximum(0.0, views["energy_j"] - idle_j - prefill_j), idle_j], axis=1)


def limits_w(live: Live) -> list[float]:
    """What each instance may draw: its cap, or the TDP of its GPUs, W."""
    return [spec.gpus * limit_w(spec) for spec in live.fleet.instances]


def limit_w(spec: InstanceSpec) -> float:
    """The cap of an instance, or its GPU's TDP, W per GPU."""
    if spec.power_cap_w is not None:
        return spec.power_cap_w
    return profile_of(spec).tdp_w


def energy(live: Live, views: Table) -> Row:
    """Power and energy by instance and tier, and of the window over the whole fleet."""
    spent = shares_j(live, views)
    rows = [meter(live, i, views[i], spent[i]) for i in range(len(views))]
    roles = dict.fromkeys(row["role"] for row in rows)
    rolling = live.rolling
    return {
        "rows": rows,
        "tiers": [tier(role, [row for row in rows if row["role"] == role]) for role in roles],
        "window_s": rolling.window_s,
        "tokens_per_joule": rolling.tokens_per_joule(idle_billed=False),
        "tokens_per_joule_idle_billed": rolling.tokens_per_joule(),
        "joules_per_workflow": rolling.joules_per_workflow(idle_billed=False),
        "joules_per_workflow_idle_billed": rolling.joules_per_workflow(),
    }


def meter(live: Live, i: int, view: Any, spent_j: Floats) -> Row:
    """One instance: draw (W of all its GPUs), cap (W per GPU) with its bounds, and J so far."""
    spec, row = live.fleet.instances[i], live.world.instances[i]
    found = profile_of(spec)
    low_w, high_w = cap_bounds(found)
    tokens, joules = int(row["prefill_tokens"] + row["decode_tokens"]), float(view["energy_j"])
    return {
        "instance": spec.name,
        "role": spec.role,
        "state": INSTANCE_STATES[int(row["state"])],
        "gpu": spec.gpu,
        "model": spec.model,
        "gpus": spec.gpus,
        "profile": spec.profile,
        "max_num_seqs": spec.max_num_seqs,
        "max_num_batched_tokens": spec.max_num_batched_tokens,
        "power_w": float(view["power_w"]),
        "cap_w": spec.power_cap_w,
        "lowest_cap_w": low_w,
        "tdp_w": high_w,
        "idle_w": found.power.idle_w * spec.gpus,
        **{name: round(float(value), 3) for name, value in zip(SHARES, spent_j, strict=True)},
        "tokens": tokens,
        "tokens_per_joule": tokens / joules if joules > 0.0 else None,
    }


def tier(role: str, rows: list[Row]) -> Row:
    """The instances of one role together; one that is down may draw nothing."""
    joules = sum(row[name] for row in rows for name in SHARES)
    tokens = sum(row["tokens"] for row in rows)
    return {
        "role": role,
        "instances": len(rows),
        "power_w": sum(row["power_w"] for row in rows),
        "limit_w": sum(row["gpus"] * (row["cap_w"] or row["tdp_w"]) for row in rows if row["state"] != "down"),
        "caps_w": sorted({row["cap_w"] for row in rows if row["cap_w"] is not None}),
        "uncapped": sum(row["cap_w"] is None for row in rows),
        **{name: sum(row[name] for row in rows) for name in SHARES},
        "tokens_per_joule": tokens / joules if joules > 0.0 else None,
    }
