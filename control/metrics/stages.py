"""The ledger seen from its parts: by step, by instance; and what active workflows owe so far."""

import numpy as np

from control.metrics.ledger import CAUSES, TIMERS
from control.metrics.slo import clocks_s
from control.policy.codes import DECODE, HELD, PREFILL, TRANSFER, WAITING
from control.policy.tables import Floats, Table

OPEN = (WAITING, PREFILL, DECODE)
UNDER_WAY = (*OPEN, TRANSFER, HELD)  # also on its way, or waiting for room


def times_by(calls: Table, column: str, n: int) -> Floats:
    """Time of the critical calls by `column` (step or instance) and cause [n, causes], s; tool time is on no call."""
    times: Floats = np.zeros((n, len(CAUSES)))
    critical = calls[(calls["critical"] == 1) & (calls[column] >= 0)]
    for k, timer in enumerate(TIMERS):
        if timer:
            np.add.at(times[:, k], critical[column], critical[timer])
    return times


def plans_by_step(steps: Table, template: Floats) -> Floats:
    """Planned time by step and cause [steps, causes] of a workflow with this template [steps], s."""
    plans: Floats = np.zeros((len(steps), len(CAUSES)))
    plans[:, CAUSES.index("prefill")] = template * steps["mean_prefill_s"]
    plans[:, CAUSES.index("decode")] = template * (steps["mean_exec_s"] - steps["mean_prefill_s"])
    plans[:, CAUSES.index("tool")] = template * steps["mean_tool_s"]
    return plans


def active_debts_s(workflows: Table, calls: Table, steps: Table, now_s: float) -> Floats:
    """What each workflow is behind the plan of the stages it has reached [w], at least 0, s.

    Elapsed time, less tool time and the planned time of its ended stages, less the stage under way up to its plan.
    """
    planned: Floats = np.zeros(len(workflows))
    critical = calls[calls["critical"] == 1]
    np.add.at(planned, critical["workflow"], steps["mean_exec_s"][critical["step"]])
    under_way: Floats = np.zeros(len(workflows))
    is_open = calls[np.isin(calls["state"], OPEN)]
    spent = np.minimum(now_s - is_open["ready_s"], steps["mean_exec_s"][is_open["step"]])
    np.maximum.at(under_way, is_open["workflow"], spent)
    behind = clocks_s(workflows, now_s) - workflows["arrival_s"] - workflows["tool_s"] - planned - under_way
    return np.asarray(np.maximum(0.0, behind))
