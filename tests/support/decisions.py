"""Synthetic placements with their receipts, and replays of them, as the engine stores them."""

from typing import Any


def candidate(instance: str, score: float | None = 1.0, why: str | None = None, **changed: Any) -> dict[str, Any]:
    """One instance of a receipt."""
    row = {"instance": instance, "t_comp_s": 1.2, "t_queue_s": 8.0, "score": score, "why": why, "age_s": 0.0}
    return row | changed


def placement(number: int = 1, **changed: Any) -> dict[str, Any]:
    """One placement on h100-0 with a100-0 as the runner-up and l4-0 draining."""
    candidates = [
        candidate("h100-0", 1.4, t_comp_s=0.8, t_queue_s=9.5),
        candidate("a100-0", 1.1, t_queue_s=4.0, age_s=0.4),
        candidate("l4-0", None, "draining", t_comp_s=None),
    ]
    row = {
        "sim_s": 60.5 + number,
        "call": 1000 + number,
        "workflow": 100 + number // 2,
        "stage": "candidate" if number % 2 else "correction",
        "instance": "h100-0",
        "policy": "hexgen",
        "alpha": 0.3,
        "score": 1.4,
        "t_comp_s": 0.8,
        "t_queue_s": 9.5,
        "budget_s": 25.0,
        "runner_up": "a100-0",
        "runner_up_score": 1.1,
        "candidates": candidates,
        "filtered": {"draining": 1},
    }
    return row | changed


def replay(decision: int, **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Params and result of the replay of a placement: 4.2 s longer on the runner-up."""
    params = {"decision": decision, "sim_s": 300.0, "workflow": 100, "call": 1001, "stage": "candidate"}
    params |= {"instance": "h100-0", "runner_up": "a100-0", "policy": "hexgen", "alpha": 0.3, "placed_sim_s": 61.5}
    busy = {"busy_s": 80.0, "other_busy_s": 79.0, "finished": 20, "other_finished": 19}
    result = {
        "problem": None,
        "state_sim_s": 0.0,
        "until_sim_s": 140.0,
        "latency_s": 30.0,
        "replayed_s": 30.0,
        "other_s": 34.2,
        "difference_s": 4.2,
        "is_exact": True,
        "workflows": 57,
        "debt_s": 12.0,
        "other_debt_s": 15.5,
        "per_instance": [
            {"instance": "h100-0"} | busy,
            {"instance": "l4-0"} | busy | {"other_busy_s": 80.0, "other_finished": 20},
        ],
        "wall_s": 0.4,
    }
    return params, result | changed
