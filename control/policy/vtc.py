"""Virtual token counters: a fair share of an instance for every workflow (HexGen-Flow, section 6, after VTC)."""

import math

from control.jit import compiled
from control.policy.tables import Record, Table

INPUT_WEIGHT, OUTPUT_WEIGHT = 1.0, 2.0


@compiled
def vtc_is_before(counters: Table, a: int, b: int) -> bool:
    """Whether workflow `a` is served before workflow `b`: smaller counter, then first seen at the instance."""
    one, other = counters[a], counters[b]
    if one["tokens"] != other["tokens"]:
        return one["tokens"] < other["tokens"]
    return one["seen"] < other["seen"]


@compiled
def vtc_arrive(instance: Record, counters: Table, calls: Table, workflow: int) -> None:
    """A call of `workflow` comes to the instance; those that wait there are linked from its `wait_head`.

    A workflow that had none waiting is lifted to the smallest counter of the others that wait, never lowered.
    """
    if counters[workflow]["seen"] == 0:
        instance["seen"] += 1
        counters[workflow]["seen"] = instance["seen"]
    least, c = math.inf, instance["wait_head"]
    while c >= 0:
        if calls[c]["workflow"] == workflow:
            return
        least = min(least, counters[calls[c]["workflow"]]["tokens"])
        c = calls[c]["next"]
    if least < math.inf:
        counters[workflow]["tokens"] = max(counters[workflow]["tokens"], least)


@compiled
def vtc_charge(counters: Table, workflow: int, inputs: int, outputs: int) -> None:
    """Charge a workflow for tokens served: 1 each of input, 2 each generated."""
    counters[workflow]["tokens"] += INPUT_WEIGHT * inputs + OUTPUT_WEIGHT * outputs
