"""What is learned, and the budgets and plans drawn up from it."""

from dataclasses import dataclass
from itertools import groupby

from tests.naive.state import Call, Instance, Workflow


@dataclass(eq=False)
class Step:
    """What history says of a kind of call."""

    seen: float
    mean_input: float
    mean_output: float
    mean_tool_s: float
    mean_exec_s: float
    mean_prefill_s: float
    drops: int


@dataclass(eq=False)
class Kind:
    """How the template of a kind of workflow is known."""

    declared: int
    seen: float
    template: list[float]  # entries by step


def plain_sum(values: list[float]) -> float:
    """Sum from left to right, as the model adds (Python's own sum compensates for rounding)."""
    total = 0.0
    for value in values:
        total += value
    return total


def plain_mean(values: list[float]) -> float:
    """Mean by that sum."""
    return plain_sum(values) / len(values)


def learn(instances: list[Instance], steps: list[Step], call: Call) -> None:
    """Fold a completed call into its step's running means; its fleet-mean times follow."""
    step = steps[call.step]
    step.seen += 1.0
    step.mean_input += (call.input_tokens - step.mean_input) / step.seen
    step.mean_output += (call.emitted - step.mean_output) / step.seen
    step.mean_tool_s += (call.tool_s - step.mean_tool_s) / step.seen
    tokens = int(step.mean_input)
    step.mean_prefill_s = plain_mean([e.costs.prefill_s(tokens) for e in instances])
    step.mean_exec_s = step.mean_prefill_s + plain_mean([e.costs.decode_s(tokens, step.mean_output) for e in instances])


def stages_of(group: list[Call]) -> list[int]:
    """Steps of a group's stages: calls of one step in a row are one stage."""
    return [step for step, _ in groupby(call.step for call in group)]


def learn_template(kind: Kind, workflow: Workflow) -> None:
    """Fold the stages of a workflow that is done into the mean template of its kind, unless that is declared."""
    if kind.declared:
        return
    ran = [step for group in workflow.groups for step in stages_of(group)]
    kind.seen += 1.0
    for k in range(len(kind.template)):
        kind.template[k] += (ran.count(k) - kind.template[k]) / kind.seen


def draw_up_plan(workflow: Workflow, kind: Kind, steps: list[Step]) -> None:
    """The workflow arrives: its template is that of its kind, its plan the fleet-mean times over it."""
    workflow.template = list(kind.template)
    entries = list(zip(kind.template, steps, strict=True))
    workflow.plan_prefill_s = plain_sum([n * step.mean_prefill_s for n, step in entries])
    workflow.plan_decode_s = plain_sum([n * (step.mean_exec_s - step.mean_prefill_s) for n, step in entries])
    workflow.plan_tool_s = plain_sum([n * step.mean_tool_s for n, step in entries])


def set_budgets(workflow: Workflow, group: list[Call], steps: list[Step], now_s: float) -> None:
    """Each stage takes one entry off the template; each call gets its share of what is left."""
    for k in stages_of(group):
        workflow.template[k] = max(0.0, workflow.template[k] - 1.0)
        if steps[k].drops >= 0:
            workflow.template[steps[k].drops] = 0.0
    later_s = plain_sum([count * step.mean_exec_s for count, step in zip(workflow.template, steps, strict=True)])
    left_s = workflow.slo_s - (now_s - workflow.arrival_s)
    for call in group:
        own_s = steps[call.step].mean_exec_s
        call.ready_s = now_s
        call.deadline_s = workflow.arrival_s + workflow.slo_s
        call.budget_s = left_s * own_s / (own_s + later_s)
