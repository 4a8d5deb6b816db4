"""Synthetic detail documents, ended workflows and tuning runs in the engine's format."""

from typing import Any

CAUSES = ("queue_own", "queue_other", "prefill", "decode", "preemption", "transfer", "tool", "failure")
STAGES = ("schema_linking", "candidate", "correction", "unit_test")
TENANTS = ("analytics", "support")


def call(number: int, **changed: Any) -> dict[str, Any]:
    """One waiting call; every third is late, every fifth was preempted, every fourth has no runner-up."""
    row = {
        "call": 1000 + number,
        "workflow": 100 + number // 2,
        "stage": STAGES[number % 4],
        "tenant": TENANTS[number % 2],
        "kind": "text2sql",
        "laxity_s": -3.4 if number % 3 == 0 else 4.2 + 7.7 * number,
        "wait_s": 0.8 + 1.3 * number,
        "t_comp_s": 4.12,
        "t_queue_s": 2.5,
        "budget_s": 25.0,
        "score": 0.734512,
        "runner_up": None if number % 4 == 0 else "a100-0",
        "runner_up_score": None if number % 4 == 0 else 0.81,
        "preempted": number % 5 == 4,
    }
    return row | changed


def queue(instance: str, waiting: int, total: int | None = None) -> dict[str, Any]:
    """The queue of one instance."""
    calls = [call(k) for k in range(waiting)]
    return {"instance": instance, "total": waiting if total is None else total, "calls": calls}


def active(number: int, late_s: float, **changed: Any) -> dict[str, Any]:
    """One workflow on its way."""
    row = {
        "id": number,
        "kind": "text2sql",
        "tenant": TENANTS[number % 2],
        "arrival_sim_s": 10.0,
        "slo_s": 40.0,
        "elapsed_s": 40.0 + late_s,
        "late_s": late_s,
        "debt_s": late_s + 12.5,
        "stage": STAGES[number % 4],
        "done_calls": 3,
        "calls": 7,
    }
    return row | changed


def ledger(scale: float = 1.0) -> dict[str, Any]:
    """The fleet's ledger by cause, tenant, stage and instance, s."""
    spent = [scale * s for s in (310.0, 128.4, -14.2, -96.5, 31.0, 0.0, 4.2, 18.9)]
    return {
        "window_s": 300.0,
        "causes": list(CAUSES),
        "fleet": spent,
        "by_tenant": {t: [s * w for s in spent] for t, w in zip(TENANTS, (0.7, 0.3), strict=True)},
        "by_stage": {t: [s * w for s in spent] for t, w in zip(STAGES, (0.4, 0.3, 0.2, 0.1), strict=True)},
        "by_instance": {n: [abs(s) * w for s in spent] for n, w in (("h100-0", 0.5), ("a100-0", 0.3), ("l4-0", 0.2))},
        "active_debt_s": 57.3,
    }


def tuning(**changed: Any) -> dict[str, Any]:
    """A tuner at rest that proposes nothing."""
    row = {
        "mode": "suggest",
        "pinned": False,
        "running": False,
        "progress": None,
        "last_run": None,
        "suggested_alpha": None,
        "cooldown_s": 42.0,
    }
    return row | changed


def conversation(number: int, **changed: Any) -> dict[str, Any]:
    """One open conversation, idle on h100-0 after two turns, the second of which found its KV gone."""
    first = [number * 10, "h100-0", 0.0, 1.4, 9.0, 0.2, 1.0, 0.0, 0.1, 0.0, 0.0, 7.7, 4.0, "completed", None]
    second = [
        number * 10 + 1,
        "h100-0",
        13.0,
        14.0,
        18.0,
        0.0,
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
        4.0,
        6.2,
        "completed",
        "evicted",
    ]
    row = {
        "workflow": number,
        "tenant": TENANTS[number % 2],
        "decoder": "h100-0",
        "pinned": True,
        "state": "idle",
        "kv_tokens": 18_432,
        "reserved_tokens": 18_496,
        "idle_s": 6.2,
        "turns": 2,
        "of_turns": 7,
        "cached_share": 0.931,
        "ttfet_s": 14.0,
        "breaks": 1,
        "break_cause": "evicted",
        "moved": 1,
        "elapsed_s": 24.2,
        "turn_rows": [first, second],
    }
    return row | changed


def conversations(rows: list[dict[str, Any]] | None = None, **changed: Any) -> dict[str, Any]:
    """Three open conversations: one held, one that broke, one in its first turn."""
    held = {"decoder": None, "pinned": False, "state": "held", "idle_s": None, "reserved_tokens": 0, "turns": 0}
    fresh = {"decoder": "a100-0", "state": "decode", "idle_s": None, "breaks": 0, "break_cause": None, "turns": 0}
    fresh |= {"kv_tokens": 9000, "cached_share": None}
    listed = [conversation(311, **held), conversation(312), conversation(313, **fresh)] if rows is None else rows
    report = {"rows": listed, "open": len(listed), "pinned": 2, "held": 1, "moving": 0, "breaks": 4}
    return report | {"transfers": 9, "transferred_tokens": 141_200} | changed


def cache(instance: str, running: float = 0.4, pinned: float = 0.3, **changed: Any) -> dict[str, Any]:
    """One instance's KV cache of 400,000 tokens, a tenth of it other cached prefixes."""
    row = {
        "instance": instance,
        "role": "mixed",
        "capacity_tokens": 400_000,
        "running_tokens": round(400_000 * running),
        "pinned_tokens": round(400_000 * pinned),
        "cached_tokens": 40_000,
        "free_tokens": round(400_000 * (0.9 - running - pinned)),
        "reserved_tokens": 280_000,
        "conversations": 14,
        "headroom": 6.3,
        "preemptions": 2,
        "evicted_tokens": 38_100,
        "sent": 3,
        "sent_tokens": 48_000,
    }
    return row | changed


def kv(**changed: Any) -> dict[str, Any]:
    """The caches of three instances and two holders."""
    names = ("h100-0", "a100-0", "l4-0")
    holders = [
        {"workflow": 312, "tenant": "support", "instance": "h100-0", "kv_tokens": 18_432, "state": "idle"},
        {"workflow": 311, "tenant": "analytics", "instance": None, "kv_tokens": 9_216, "state": "held"},
    ]
    return {"rows": [cache(name) for name in names], "mean_context_tokens": 15_900.0, "holders": holders} | changed


def meter(instance: str, gpu: str = "A40", role: str = "mixed", **changed: Any) -> dict[str, Any]:
    """One A40's power: 300 W allowed, 105 W at least."""
    row = {
        "instance": instance,
        "role": role,
        "gpu": gpu,
        "model": "Qwen3-0.6B" if gpu == "A40" else "Llama-3.1-8B",
        "gpus": 1,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 2048,
        "power_w": 210.4,
        "cap_w": None,
        "lowest_cap_w": 105.0,
        "tdp_w": 300.0,
        "idle_w": 77.0,
        "prefill_j": 3_000.0,
        "decode_j": 6_000.0,
        "idle_j": 1_000.0,
        "tokens": 15_000,
        "tokens_per_joule": 1.5,
    }
    return row | changed


def power(rows: list[dict[str, Any]] | None = None, **changed: Any) -> dict[str, Any]:
    """One prefiller and two decoders."""
    listed = [meter("a40-0", role="prefill"), meter("a40-1", role="decode"), meter("a40-2", role="decode")]
    listed = listed if rows is None else rows
    tiers = []
    for role in dict.fromkeys(row["role"] for row in listed):
        mine = [row for row in listed if row["role"] == role]
        tier = {name: sum(row[name] for row in mine) for name in ("power_w", "prefill_j", "decode_j", "idle_j")}
        tier |= {"role": role, "instances": len(mine), "tokens_per_joule": 1.5}
        tier |= {"limit_w": sum(row["cap_w"] or row["tdp_w"] for row in mine)}
        tier |= {"caps_w": sorted({row["cap_w"] for row in mine if row["cap_w"]})}
        tiers.append(tier | {"uncapped": sum(row["cap_w"] is None for row in mine)})
    report = {"rows": listed, "tiers": tiers, "window_s": 300.0, "tokens_per_joule": 61.3}
    report |= {"tokens_per_joule_idle_billed": 56.1, "joules_per_workflow": 1880.0}
    return report | {"joules_per_workflow_idle_billed": 2060.0} | changed


def detail(at: float, sim_s: float = 10.0, **changed: Any) -> dict[str, Any]:
    """A whole detail document."""
    document = {
        "at": at,
        "sim_s": sim_s,
        "queues": [queue("h100-0", 9), queue("a100-0", 0), queue("l4-0", 14, 40)],
        "ledger": ledger(),
        "active": [active(201, 8.4), active(202, -15.0)],
        "tuning": tuning(),
        "conversations": conversations(),
        "kv": kv(),
        "power": power(),
    }
    return document | changed


def step(number: int, group: int, ready_s: float, spent: tuple[float, float, float], **changed: Any) -> dict[str, Any]:
    """One call of a timeline; `spent` is its queue, prefill and decode time, s."""
    queue_s, prefill_s, decode_s = spent
    row = {
        "call": number,
        "stage": STAGES[group % 4],
        "instance": "h100-0",
        "group": group,
        "ready_s": ready_s,
        "started_s": ready_s + queue_s,
        "first_token_s": ready_s + queue_s + prefill_s,
        "finished_s": ready_s + sum(spent),
        "queue_s": queue_s,
        "prefill_s": prefill_s,
        "decode_s": decode_s,
        "preempted_s": 0.0,
        "failure_s": 0.0,
        "tool_s": 0.0,
        "budget_s": 9.0,
        "critical": True,
        "state": "completed",
    }
    return row | changed


def timeline() -> list[dict[str, Any]]:
    """Five calls in three groups: a plain one, three in parallel (one preempted, one retried), a last one."""
    return [
        step(1, 0, 0.0, (1.2, 0.6, 5.0), tool_s=2.0),
        step(2, 1, 8.8, (3.0, 0.8, 9.0), critical=False),
        step(3, 1, 8.8, (2.0, 0.8, 11.0), preempted_s=3.4, finished_s=26.0, instance="l4-0"),
        step(4, 1, 8.8, (1.0, 0.5, 4.0), failure_s=5.2, finished_s=19.5, critical=False, instance="a100-0"),
        step(5, 2, 26.0, (6.5, 0.7, 7.9)),
    ]


def workflow(number: int, **changed: Any) -> dict[str, Any]:
    """An ended workflow's row whose ledger sums to its latency less its plan."""
    spent = [9.7, 0.0, 0.4, -3.8, 3.4, 0.0, 0.5, 0.0]
    row = {
        "id": number,
        "kind": "text2sql",
        "tenant": TENANTS[number % 2],
        "arrival_sim_s": 1.0,
        "finished_sim_s": 42.1,
        "latency_s": 41.1,
        "slo_s": 38.0,
        "debt_s": 3.1,
        "state": "completed",
        "calls": 5,
        "input_tokens": 9000,
        "output_tokens": 1200,
        "energy_j": 800.0,
        "plan_s": 41.1 - sum(spent),
        "ledger": spent,
        "timeline": timeline(),
    }
    return row | changed


def run(alpha: float = 0.4, before: float = 0.2, **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Params and result of one tuning run; keyword arguments replace keys of the result."""
    grid = [round(0.1 * k, 1) for k in range(11)]
    points = [(a, 24.0 + 40.0 * (a - alpha) ** 2) for a in grid]
    curve = [{"alpha": a, "p95_s": p, "low_s": 0.9 * p, "high_s": 1.12 * p} for a, p in points]
    params = {
        "trigger": "period",
        "window_s": 600.0,
        "calls": 812,
        "grid": grid,
        "resamples": 200,
        "policy": "hexgen",
        "alpha_before": before,
    }
    result = {
        "curve": curve,
        "alpha": alpha,
        "current_alpha": before,
        "gain": 0.124,
        "gain_low": 0.05,
        "gain_high": 0.18,
        "decision": "applied",
        "reason": "better in 97 % of the resamples",
        "predicted_p95_s": 24.0,
        "predicted_low_s": 21.6,
        "predicted_high_s": 26.9,
        "realised_p95_s": None,
        "realised_until_sim_s": None,
        "cpu_s": 1.84,
        "wall_s": 2.2,
    }
    return params, result | changed


def prediction(alpha: float = 0.4, **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Params and result of one twin run behind a prediction; keyword arguments replace keys of the result."""
    params = {"policy": "hexgen", "sim_s": 1800.0, "window_s": 600.0, "alpha": alpha}
    names = ("h100-0", "a100-0", "l4-0")
    result = {
        "alpha": alpha,
        "workflows": 96,
        "p50_s": 11.2,
        "p95_s": 24.0,
        "p99_s": 31.5,
        "mean_s": 12.6,
        "slo_attainment": 0.938,
        "slo_debt_s": 41.0,
        "span_s": 655.0,
        "per_instance": [
            {"name": name, "finished": 400 - 130 * k, "busy_fraction": 0.92 - 0.2 * k, "preemptions": k}
            for k, name in enumerate(names)
        ],
    }
    return params, result | changed
