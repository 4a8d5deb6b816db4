"""The debt ledger: for each workflow, seconds lost against its plan, by cause.

Elapsed time is that of the calls each group waited for, plus their tool time. Every part of it was timed by
itself while it passed (twin.phases); the plan is the fleet-mean time at historical lengths over the
workflow's template, drawn up as it arrived, in which queueing, transfer, preemption and failure are 0. A
cause's debt is its time minus what was planned for it, and may be negative; the causes sum to elapsed minus
plan.
"""

from typing import Final

import numpy as np

from control.policy.codes import BROKEN, DONE
from control.policy.tables import Floats, Table

CAUSES: Final = (
    "queue_own",  # waited behind calls of its own tenant
    "queue_other",  # waited behind other tenants' calls
    "prefill",
    "decode",
    "preemption",
    "transfer",  # KV transfer
    "tool",
    "failure",  # lost with an instance
)
TIMERS: Final = ("queue_own_s", "queue_other_s", "prefill_s", "decode_s", "preempted_s", "transfer_s", "", "failure_s")
PLANS: Final = ("", "", "plan_prefill_s", "plan_decode_s", "", "", "plan_tool_s", "")


def spent_s(workflows: Table, calls: Table) -> Floats:
    """Time of each workflow by cause [w, causes], over the groups that have ended, s."""
    spent: Floats = np.zeros((len(workflows), len(CAUSES)))
    critical = calls[calls["critical"] == 1]
    for k, timer in enumerate(TIMERS):
        if timer:
            np.add.at(spent[:, k], critical["workflow"], critical[timer])
    spent[:, CAUSES.index("tool")] = workflows["tool_s"]
    return spent


def planned_s(workflows: Table) -> Floats:
    """Planned time of each workflow by cause [w, causes], s."""
    planned: Floats = np.zeros((len(workflows), len(CAUSES)))
    for k, plan in enumerate(PLANS):
        if plan:
            planned[:, k] = workflows[plan]
    return planned


def debts_s(workflows: Table, calls: Table) -> Floats:
    """Debt of each workflow by cause [w, causes]: time minus plan, s. Meaningful for workflows that have ended."""
    return spent_s(workflows, calls) - planned_s(workflows)


def debt_by_cause_s(workflows: Table, calls: Table) -> dict[str, float]:
    """Debt summed over the ended workflows, by cause, s."""
    ended = np.isin(workflows["state"], (DONE, BROKEN))
    sums = debts_s(workflows, calls)[ended].sum(axis=0)
    return {cause: float(value) for cause, value in zip(CAUSES, sums, strict=True)}
