"""Which instances may take a call."""

from control.jit import compiled
from control.policy.codes import UP
from control.policy.tables import Record, Table


@compiled
def fits_context(instance: Record, call: Record) -> bool:
    """Whether the call's context and at least one more token fit the instance's context limit."""
    return call["input_tokens"] + call["emitted"] + 1 <= instance["max_model_len"]


@compiled
def is_eligible(instance: Record, call: Record) -> bool:
    """Whether the instance accepts new calls and this one fits it."""
    return instance["state"] == UP and fits_context(instance, call)


@compiled
def count_eligible(instances: Table, call: Record) -> int:
    """Number of instances that may take the call."""
    n = 0
    for i in range(len(instances)):
        if is_eligible(instances[i], call):
            n += 1
    return n


@compiled
def nth_eligible(instances: Table, call: Record, n: int) -> int:
    """Row of the n-th (0-based) instance that may take the call; -1 where there are fewer."""
    for i in range(len(instances)):
        if is_eligible(instances[i], call):
            if n == 0:
                return i
            n -= 1
    return -1


@compiled
def fits_any_context(instances: Table, call: Record) -> bool:
    """Whether any instance of the fleet, up or not, has a context limit that holds the call."""
    for i in range(len(instances)):
        if fits_context(instances[i], call):
            return True
    return False
