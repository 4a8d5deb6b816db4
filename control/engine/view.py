"""The live state as the snapshot, the samples and the rows that are stored and shown."""

from collections.abc import Callable
from typing import Any

import numpy as np

from control.engine.energy import limits_w, shares_j
from control.engine.occupancy import pinned_blocks
from control.engine.orders_kv import retention_of
from control.engine.rolling import Ended, Meter
from control.engine.state import Live
from control.metrics.slo import overdue_s
from control.model.fleet import profile_of
from control.policy.codes import (
    ACTIVE,
    BREAKS,
    BY_CLIENT,
    CALL_ENDED,
    CAUSES,
    COMPLETED,
    DECODE,
    DONE,
    INSTANCE_STATES,
    PIN_BROKEN,
    PLACED,
    POLICIES,
    PREFILL,
    REFUSED,
    ROLES,
    WAITING,
    WORKFLOW_ENDED_ENTRY,
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
        "power_limit_w": sum(row["power_limit_w"] for row in instances),
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


def drain_journal(live: Live, look: Callable[[int], Row] = lambda w: {}) -> tuple[list[Row], list[Row]]:
    """Decisions and ended workflows since the last call, as rows; the rolling figures take them in.

    `look` is told the row number of each ended workflow while it is still there, and may add to its row.
    """
    world = live.world
    entries = world.journal[: int(world.clock[0]["n_journal"])]
    decisions, workflows = [], []
    for entry in entries:
        kind, row = int(entry["kind"]), int(entry["row"])
        if kind == PLACED:
            decisions.append(decision_row(live, row, float(entry["at_s"])))
        elif kind == CALL_ENDED:
            note_call(live, row)
        elif kind == PIN_BROKEN:
            live.broken[int(live.world.calls[row]["uid"])] = int(entry["instance"])
        elif kind == WORKFLOW_ENDED_ENTRY:
            workflows.append(with_breaks(live, workflow_row(live, row) | look(row)))
    world.clock[0]["n_journal"] = 0
    return decisions, workflows


def with_breaks(live: Live, row: Row) -> Row:
    """A workflow that ended, with why its turns found their conversation's KV gone."""
    for call in row.get("timeline") or ():
        cause = live.broken.pop(call["call"], None)
        if cause is not None:
            call["broke"] = BREAKS[cause]
    return row


def decision_row(live: Live, c: int, at_s: float) -> Row:
    """A placement as it was decided."""
    call, names = live.world.calls[c], [spec.name for spec in live.fleet.instances]
    other = int(call["runner_up"])
    return {
        "sim_s": at_s,
        "call": int(call["uid"]),
        "workflow": int(live.world.workflows[call["workflow"]]["id"]),
        "stage": live.names[2][int(call["step"])],
        "instance": names[int(call["instance"])],
        "policy": live.policy,
        "alpha": live.alpha,
        "score": float(call["score"]),
        "t_comp_s": float(call["t_comp_s"]),
        "t_queue_s": float(call["t_queue_s"]),
        "budget_s": float(call["budget_s"]),
        "runner_up": names[other] if other >= 0 else None,
        "runner_up_score": float(call["runner_up_score"]) if other >= 0 else None,
    }


def note_call(live: Live, c: int) -> None:
    """Count a call that ended."""
    call = live.world.calls[c]
    if call["state"] == COMPLETED:
        live.rolling.context += int(call["input_tokens"] + call["emitted"])
    elif call["state"] == REFUSED:
        live.rolling.refused += 1


def workflow_row(live: Live, w: int) -> Row:
    """A workflow that ended."""
    workflow = live.world.workflows[w]
    first, n = int(workflow["first_call"]), int(workflow["n_calls"])
    calls = live.world.calls[first : first + n]
    latency_s = float(workflow["finished_s"] - workflow["arrival_s"])
    done = bool(workflow["state"] == DONE)
    met = done and latency_s <= float(workflow["slo_s"])
    live.rolling.note(Ended(float(workflow["finished_s"]), latency_s, met, done))
    return {
        "id": int(workflow["id"]),
        "kind": live.names[0][int(workflow["kind"])],
        "tenant": live.names[1][int(workflow["tenant"])],
        "arrival_sim_s": float(workflow["arrival_s"]),
        "finished_sim_s": float(workflow["finished_s"]),
        "latency_s": latency_s,
        "slo_s": float(workflow["slo_s"]),
        "debt_s": max(0.0, latency_s - float(workflow["slo_s"])),
        "state": "completed" if done else "cancelled" if workflow["cause"] == BY_CLIENT else "refused",
        "cause": CAUSES[int(workflow["cause"])] or None,
        "calls": n,
        "input_tokens": int(calls["input_tokens"].sum()),
        "output_tokens": int(calls["emitted"].sum()),
        "energy_j": float(calls["energy_j"].sum()),
    }
