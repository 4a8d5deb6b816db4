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


def detail(at: float, sim_s: float = 10.0, **changed: Any) -> dict[str, Any]:
    """A whole detail document."""
    document = {
        "at": at,
        "sim_s": sim_s,
        "queues": [queue("h100-0", 9), queue("a100-0", 0), queue("l4-0", 14, 40)],
        "ledger": ledger(),
        "active": [active(201, 8.4), active(202, -15.0)],
        "tuning": tuning(),
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
