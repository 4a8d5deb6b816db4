"""SLO budgets of calls, recomputed when each stage becomes ready (HexGen-Flow, section 2)."""

from control.jit import compiled
from control.policy.cost import mean_exec_s
from control.policy.tables import Costs, Ints, Table


@compiled
def share_budget_s(slo_s: float, elapsed_s: float, own_s: float, later_s: float) -> float:
    """slo_ij = (SLO_i - elapsed_i) t_j / (t_j + sum of t_k over the remaining template), s."""
    return (slo_s - elapsed_s) * own_s / (own_s + later_s)


@compiled
def use_template(remaining: Ints, steps: Table, workflow: int, step: int) -> None:
    """Take one entry of `step` off the workflow's remaining template, and the repeats that it ends.

    A step that is no longer in the template removes nothing.
    """
    if remaining[workflow, step] > 0:
        remaining[workflow, step] -= 1
    dropped = steps[step]["drops"]
    if dropped >= 0:
        remaining[workflow, dropped] = 0


@compiled
def remaining_s(remaining: Ints, steps: Table, workflow: int) -> float:
    """Fleet-mean time of the remaining template of a workflow, s."""
    total = 0.0
    for k in range(len(steps)):
        total += remaining[workflow, k] * steps[k]["mean_exec_s"]
    return total


@compiled
def learn_step(costs: Costs, instances: Table, steps: Table, step: int, inputs: int, outputs: int) -> None:
    """Fold the lengths of a finished call into the history of its step (a running mean)."""
    row = steps[step]
    row["seen"] += 1.0
    row["mean_input"] += (inputs - row["mean_input"]) / row["seen"]
    row["mean_output"] += (outputs - row["mean_output"]) / row["seen"]
    refresh_step(costs, instances, steps, step)


@compiled
def refresh_step(costs: Costs, instances: Table, steps: Table, step: int) -> None:
    """Bring t_k of a step up to date with its mean lengths and the fleet."""
    row = steps[step]
    row["mean_exec_s"] = mean_exec_s(costs, instances, int(row["mean_input"]), row["mean_output"])
