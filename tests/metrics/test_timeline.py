"""What the Gantt draws of a workflow: offsets from its arrival, and None where nothing happened."""

from control.metrics.timeline import timeline
from control.policy.codes import COMPLETED, PLANNED
from tests.support import tables

HAPPENED = {"ready_s": 100.5, "started_s": 101.0, "first_token_s": 102.25, "finished_s": 104.0}
PHASES = {"queue_own_s": 0.25, "queue_other_s": 0.75, "prefill_s": 1.0, "decode_s": 1.5, "preempted_s": 0.25}
PHASES |= {"hold_s": 0.25, "transfer_s": 0.125}  # a hold is part of the wait behind others, and shown by itself
NEVER = dict.fromkeys(HAPPENED, -1.0)


def test_call_that_ran_and_one_that_has_not() -> None:
    [workflow] = tables.workflows({"arrival_s": 100.0})
    calls = tables.calls(
        {
            "uid": 7,
            "state": COMPLETED,
            "instance": 1,
            "critical": 1,
            "tool_s": 2.0,
            "budget_s": 3.0,
            **HAPPENED,
            **PHASES,
        },
        {"uid": 8, "state": PLANNED, "instance": -1, "group": 1, "step": 1, **NEVER},
    )
    ran, coming = timeline(workflow, calls, ("plan", "code"), ("left", "right"))
    assert ran == {
        "call": 7,
        "stage": "plan",
        "instance": "right",
        "group": 0,
        "ready_s": 0.5,
        "started_s": 1.0,
        "first_token_s": 2.25,
        "finished_s": 4.0,
        "queue_s": 0.75,
        "prefill_s": 1.0,
        "decode_s": 1.5,
        "preempted_s": 0.25,
        "transfer_s": 0.125,
        "hold_s": 0.25,
        "failure_s": 0.0,
        "tool_s": 2.0,
        "budget_s": 3.0,
        "critical": True,
        "state": "completed",
    }
    assert (coming["stage"], coming["group"], coming["state"]) == ("code", 1, "planned")
    assert [coming[name] for name in ("instance", *HAPPENED)] == [None] * 5
    assert coming["critical"] is False


def test_workflow_that_arrives_at_time_zero_starts_there() -> None:
    [workflow] = tables.workflows({"arrival_s": 0.0})
    [row] = timeline(workflow, tables.calls({"instance": -1, **NEVER, "ready_s": 0.0}), ("chat",), ())
    assert row["ready_s"] == 0.0
    assert row["started_s"] is None
