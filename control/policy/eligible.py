"""Which instances may take a call."""

from control.jit import compiled
from control.policy.codes import (
    BY_PIN,
    BY_ROOM,
    BY_TIER,
    COLLOCATED,
    CONTEXT_TOO_LONG,
    DOWN,
    DRAINING,
    FAILED_BEFORE,
    IS_DOWN,
    IS_DRAINING,
    NO_ROOM,
    NOT_COMPARED,
    NOT_PINNED,
    PASSED_OVER,
    PREFILL_ROLE,
    UP,
    WRONG_ROLE,
)
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


@compiled
def why_out_of_service(instance: Record) -> int:
    """Why an instance that is not up takes no call; codes.CANDIDATE (0) where it is up."""
    if instance["state"] == DOWN:
        return IS_DOWN
    if instance["state"] == DRAINING:
        return IS_DRAINING
    return FAILED_BEFORE if instance["state"] == PASSED_OVER else 0


@compiled
def why_not(policy: Record, instance: Record, call: Record, basis: int) -> int:
    """Why the instance was no candidate for the call, whose placement was decided by `basis`: codes.IS_DOWN ..."""
    out_of_service = why_out_of_service(instance)
    if out_of_service > 0:
        return out_of_service
    if basis == BY_TIER and instance["role"] != PREFILL_ROLE:
        return WRONG_ROLE
    if basis == BY_ROOM and instance["role"] == PREFILL_ROLE and policy["dispatch"] != COLLOCATED:
        return WRONG_ROLE
    if not fits_context(instance, call):
        return CONTEXT_TOO_LONG
    if basis == BY_PIN:
        return NOT_PINNED
    return NO_ROOM if basis == BY_ROOM else NOT_COMPARED
