"""A workflow call by call: what the Gantt draws. Seconds since the workflow's arrival."""

from collections.abc import Sequence
from typing import Any

from control.policy.codes import CALL_STATES
from control.policy.tables import Record, Table

TIMERS = ("prefill_s", "decode_s", "preempted_s", "transfer_s", "hold_s", "failure_s", "tool_s", "budget_s")


def timeline(workflow: Record, calls: Table, steps: Sequence[str], instances: Sequence[str]) -> list[dict[str, Any]]:
    """One object per call of a workflow; None where something did not happen."""
    return [one_call(workflow, call, steps, instances) for call in calls]


def one_call(workflow: Record, call: Record, steps: Sequence[str], instances: Sequence[str]) -> dict[str, Any]:
    """When and where a call went through its phases."""
    arrival_s, where = float(workflow["arrival_s"]), int(call["instance"])
    moments = {
        name: None if call[name] < 0.0 else round(float(call[name]) - arrival_s, 6)
        for name in ("ready_s", "started_s", "first_token_s", "finished_s")
    }
    return {
        "call": int(call["uid"]),
        "stage": steps[int(call["step"])],
        "instance": instances[where] if where >= 0 else None,
        "group": int(call["group"]),
        **moments,
        "queue_s": round(float(call["queue_own_s"] + call["queue_other_s"] - call["hold_s"]), 6),
        **{name: round(float(call[name]), 6) for name in TIMERS},
        "critical": bool(call["critical"]),
        "state": CALL_STATES[int(call["state"])],
    }
