"""The base SLO of a workflow.

Text-to-SQL and every other kind with a declared template: fleet-mean estimate summed over the template. Any other:
five times its standalone time, alone on the fleet's fastest instance that suits it.
"""

import math

import numpy as np

from control.jit import compiled
from control.policy.cost import exec_s
from control.policy.tables import Costs, Floats, Record, Table

STANDALONE_FACTOR = 5.0


@compiled
def suits(instance: Record, calls: Table, first: int, end: int) -> bool:
    """Whether every call of a workflow fits the instance's context limit."""
    for c in range(first, end):
        if calls[c]["input_tokens"] + 1 > instance["max_model_len"]:
            return False
    return True


@compiled
def standalone_on_s(costs: Costs, instance: Record, calls: Table, first: int, end: int) -> float:
    """Time of a workflow alone on an instance, its own history in the prefix cache, tool time included, s."""
    total_s, group_s, tool_s, group = 0.0, 0.0, 0.0, -1
    for c in range(first, end):
        call = calls[c]
        if call["group"] != group:
            total_s += group_s + tool_s
            group_s, tool_s, group = 0.0, 0.0, call["group"]
        size = instance["block_size"]
        held = min(call["history_tokens"], call["input_tokens"] - 1) // size * size if instance["caching"] else 0
        one_s = exec_s(costs, instance, call["input_tokens"], held, float(call["output_tokens"]))
        group_s, tool_s = max(group_s, one_s), max(tool_s, call["tool_s"])
    return total_s + group_s


@compiled
def standalone_s(costs: Costs, instances: Table, calls: Table, first: int, end: int) -> float:
    """Standalone time on the fastest suitable instance, of all where none suits, s."""
    best_s, best_any_s = math.inf, math.inf
    for i in range(len(instances)):
        one_s = standalone_on_s(costs, instances[i], calls, first, end)
        best_any_s = min(best_any_s, one_s)
        if suits(instances[i], calls, first, end):
            best_s = min(best_s, one_s)
    return best_s if best_s < math.inf else best_any_s


@compiled
def fill_bases(
    costs: Costs, instances: Table, workflows: Table, calls: Table, template_s: Floats, bases: Floats
) -> None:
    """Fill `bases` [w] with the base SLO of each workflow, s; `template_s` [kinds] is 0 where none is declared."""
    for w in range(len(workflows)):
        workflow = workflows[w]
        bases[w] = template_s[workflow["kind"]]
        if bases[w] == 0.0:
            first = workflow["first_call"]
            alone_s = standalone_s(costs, instances, calls, first, first + workflow["n_calls"])
            bases[w] = STANDALONE_FACTOR * alone_s


def base_slos_s(costs: Costs, instances: Table, workflows: Table, calls: Table, template_s: Floats) -> Floats:
    """Base SLO of each workflow [w], s."""
    bases = np.zeros(len(workflows))
    fill_bases(costs, instances, workflows, calls, template_s, bases)
    return bases
