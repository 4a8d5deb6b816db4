"""The live state as the snapshot, the samples and the rows that are stored and shown."""

from typing import Any

import numpy as np

from control.engine.energy import limits_w, shares_j
from control.engine.occupancy import pinned_blocks
from control.engine.orders_kv import retention_of
from control.engine.rolling import Meter
from control.engine.state import Live
from control.metrics.slo import overdue_s
from control.model.fleet import profile_of
from control.policy.codes import (
    ACTIVE,
    DECODE,
    INSTANCE_STATES,
    POLICIES,
    PREFILL,
    ROLES,
    WAITING,
)
from control.policy.tables import Floats, Table
from control.twin.observe import VIEW, view_all

Row = dict[str, Any]


def instance_debts_s(live: Live) -> Floats:
    """Overdue time of active workflows by the instances their open calls are on [n], s.

    A workflow with several open calls is shared evenly; one that waits for a tool is on no instance.
    """
    world = live.world
    late = overdue_s(world.workflows, live.now_s)
    is_open = np.isin(world.calls["state"], (WAITING, PREFILL, DECODE))
    rows = world.calls[is_open]
    shares = np.bincount(rows["workflow"], minlength=len(late))
    debts: Floats = np.zeros(len(world.instances))
    np.add.at(debts, rows["instance"], late[rows["workflow"]] / shares[rows["workflow"]])
    return debts


def read_views(live: Live) -> Table:
    """One VIEW row per instance, now."""
    views = np.zeros(len(live.world.instances), VIEW)
    view_all(live.world, live.now_s, views)
    return views


def instance_rows(live: Live, views: Table) -> list[Row]:
    """What is shown of each instance."""
    debts, pinned, limits = instance_debts_s(live), pinned_blocks(live.world, views), limits_w(live)
    rows = []
    for i, spec in enumerate(live.fleet.instances):
        row, view = live.world.instances[i], views[i]
        found = profile_of(spec)
        rows.append(
            {
                "name": spec.name,
                "gpu": spec.gpu,
                "model": spec.model,
                "provenance": found.provenance,
                "simulated": spec.url is None,
                "observed": live.observed.get(i),
                "scales": [spec.prefill_scale, spec.decode_scale],
                "role": ROLES[int(row["role"])],
                "state": INSTANCE_STATES[int(row["state"])],
                "queued": int(row["n_waiting"]),
                "running": int(row["n_running"]),
                "max_num_seqs": int(row["max_num_seqs"]),
                "kv_used_fraction": float(view["used_blocks"] / row["blocks"]),
                "kv_cached_fraction": float(view["cached_blocks"] / row["blocks"]),
                "kv_pinned_fraction": float(pinned[i] / row["blocks"]),
                "kv_capacity_tokens": int(row["blocks"] * row["block_size"]),
                "power_w": float(view["power_w"]),
                "power_cap_w": None if spec.power_cap_w is None else spec.power_cap_w * spec.gpus,
                "power_limit_w": limits[i],
                "tdp_w": found.tdp_w * spec.gpus,
                "queued_work_s": float(row["queued_work_s"]),
                "slo_debt_s": float(debts[i]),
                "preemptions": int(row["preemptions"]),
            }
        )
    return rows


def fleet_row(live: Live, instances: list[Row], views: Table) -> Row:
    """What is shown of the fleet as a whole."""
    rolling = live.rolling
    idle_j = float(shares_j(live, views)[:, 2].sum())
    drawn_j, generated = float(views["energy_j"].sum()), int(views["generated"].sum())
    rolling.read(Meter(live.now_s, drawn_j, generated, rolling.context, idle_j))
    caps = [row["power_cap_w"] for row in instances]
    return {
        "queued": sum(row["queued"] for row in instances),
        "running": sum(row["running"] for row in instances),
        "slo_debt_s": float(overdue_s(live.world.workflows, live.now_s).sum()),
        "p50_s": rolling.percentile_s(50),
        "p95_s": rolling.percentile_s(95),
        "slo_attainment": rolling.attainment(),
        "throughput_wps": rolling.throughput_wps(live.now_s),
        "tokens_per_s": rolling.tokens_per_s(),
        "tokens_per_joule": rolling.tokens_per_joule(),
        "power_w": sum(row["power_w"] for row in instances),
        "power_limit_w": sum(row["power_limit_w"] for row in instances if row["state"] != "down"),
        "power_cap_w": None if any(cap is None for cap in caps) else sum(caps),
        "completed": rolling.completed,
        "failed": rolling.failed,
        "refused": rolling.refused,
        "active_workflows": int((live.world.workflows["state"] == ACTIVE).sum()),
        "window_s": rolling.window_s,
    }


def snapshot(live: Live, at: float, engine: Row, tick_ms: float) -> Row:
    """The whole payload of one snapshot."""
    views = read_views(live)
    instances = instance_rows(live, views)
    return {
        "at": at,
        "sim_s": live.now_s,
        "engine": engine | {"state": state_word(live)},
        "scenario": live.source.name,
        "gateway_url": live.gateway_url,
        "fleet_name": live.fleet.name,
        "seed": live.source.seed,
        "speed": live.speed,
        "paused": live.paused,
        "policy": live.policy,
        "policies": list(POLICIES),
        "form": live.source.form,
        "alpha": live.alpha,
        "load_scale": live.load_scale,
        "retention": retention_of(live.world),
        "unstored": dict(live.books.unstored),
        "fleet": fleet_row(live, instances, views),
        "instances": instances,
        "tick_ms": tick_ms,
    }


def state_word(live: Live) -> str:
    """running, paused or finished."""
    if live.is_finished:
        return "finished"
    return "paused" if live.paused else "running"


SAMPLED = ("queued", "running", "kv_used_fraction", "kv_pinned_fraction", "power_w", "power_limit_w", "slo_debt_s")
SUMMED = ("queued", "running", "power_w", "power_limit_w", "slo_debt_s")
FLEET_SAMPLED = ("p95_s", "slo_attainment", "throughput_wps", "tokens_per_joule")


def samples(payload: Row) -> list[Row]:
    """The 1 s samples of a snapshot: one of the fleet, one of each instance."""
    fleet, instances = payload["fleet"], payload["instances"]
    blocks = sum(row["kv_capacity_tokens"] for row in instances)
    whole = {name: fleet[name] for name in (*SUMMED, *FLEET_SAMPLED)} | {"scope": "fleet", "alpha": payload["alpha"]}
    for name in ("kv_used_fraction", "kv_pinned_fraction"):
        whole[name] = sum(row[name] * row["kv_capacity_tokens"] for row in instances) / blocks
    return [whole, *({"scope": row["name"]} | {name: row[name] for name in SAMPLED} for row in instances)]
