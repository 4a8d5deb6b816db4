"""SLO budgets of calls, recomputed when each stage becomes ready (HexGen-Flow, section 2)."""

from control.jit import compiled
from control.policy.cost import mean_decode_s, mean_prefill_s
from control.policy.tables import Costs, Floats, Record, Table


@compiled
def share_budget_s(slo_s: float, elapsed_s: float, own_s: float, later_s: float) -> float:
    """slo_ij = (SLO_i - elapsed_i) t_j / (t_j + sum of t_k over the remaining template), s."""
    return (slo_s - elapsed_s) * own_s / (own_s + later_s)


@compiled
def use_template(remaining: Floats, steps: Table, workflow: int, step: int) -> None:
    """Take one entry of `step` off the workflow's remaining template, and the repeats that it ends.

    A step that is no longer in the template removes nothing.
    """
    remaining[workflow, step] = max(0.0, remaining[workflow, step] - 1.0)
    dropped = steps[step]["drops"]
    if dropped >= 0:
        remaining[workflow, dropped] = 0.0


@compiled
def remaining_s(remaining: Floats, steps: Table, workflow: int) -> float:
    """Fleet-mean time of the remaining template of a workflow, s."""
    total = 0.0
    for k in range(len(steps)):
        total += remaining[workflow, k] * steps[k]["mean_exec_s"]
    return total


@compiled
def running_mean(old: float, value: float, weight: float) -> float:
    """Mean after one more value; `weight` counts all values, this one included."""
    return old + (value - old) / weight


@compiled
def learn_step(costs: Costs, instances: Table, steps: Table, call: Record) -> None:
    """Fold the lengths and tool time of a completed call into the history of its step."""
    row = steps[call["step"]]
    row["seen"] += 1.0
    row["mean_input"] = running_mean(row["mean_input"], call["input_tokens"], row["seen"])
    row["mean_output"] = running_mean(row["mean_output"], call["emitted"], row["seen"])
    row["mean_tool_s"] = running_mean(row["mean_tool_s"], call["tool_s"], row["seen"])
    refresh_step(costs, instances, steps, call["step"])


@compiled
def refresh_step(costs: Costs, instances: Table, steps: Table, step: int) -> None:
    """Bring t_k of a step up to date with its mean lengths and the fleet."""
    row = steps[step]
    row["mean_prefill_s"] = mean_prefill_s(costs, instances, int(row["mean_input"]))
    decode_s = mean_decode_s(costs, instances, int(row["mean_input"]), row["mean_output"])
    row["mean_exec_s"] = row["mean_prefill_s"] + decode_s


@compiled
def learn_template(templates: Floats, kinds: Table, kind: int, counts: Floats) -> None:
    """Fold the stages that an ended workflow ran, by step, into the template of its kind, unless one is declared."""
    row = kinds[kind]
    if row["declared"] == 1:
        return
    row["seen"] += 1.0
    for k in range(len(counts)):
        templates[kind, k] = running_mean(templates[kind, k], counts[k], row["seen"])


@compiled
def plan_workflow(templates: Floats, steps: Table, workflow: Record) -> None:
    """Plan of a workflow as it arrives: fleet-mean times at historical lengths over its template, s.

    Queueing, transfer, preemption and failure are planned as 0.
    """
    prefill_s, decode_s, tool_s = 0.0, 0.0, 0.0
    for k in range(len(steps)):
        n, step = templates[workflow["kind"], k], steps[k]
        prefill_s += n * step["mean_prefill_s"]
        decode_s += n * (step["mean_exec_s"] - step["mean_prefill_s"])
        tool_s += n * step["mean_tool_s"]
    workflow["plan_prefill_s"] = prefill_s
    workflow["plan_decode_s"] = decode_s
    workflow["plan_tool_s"] = tool_s
