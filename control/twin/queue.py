"""The waiting calls of an instance: a doubly linked list through the call table, in order of arrival there."""

from control.jit import compiled
from control.policy.codes import WAITING
from control.twin.world import World


@compiled
def push_back(world: World, i: int, c: int) -> None:
    """Append call `c` to the queue of instance `i`."""
    instance, call = world.instances[i], world.calls[c]
    call["state"] = WAITING
    call["prev"] = instance["wait_tail"]
    call["next"] = -1
    if instance["wait_tail"] >= 0:
        world.calls[instance["wait_tail"]]["next"] = c
    else:
        instance["wait_head"] = c
    instance["wait_tail"] = c
    instance["n_waiting"] += 1


@compiled
def push_front(world: World, i: int, c: int) -> None:
    """Put call `c` at the head of the queue of instance `i` (a preempted call resumes first)."""
    instance, call = world.instances[i], world.calls[c]
    call["state"] = WAITING
    call["prev"] = -1
    call["next"] = instance["wait_head"]
    if instance["wait_head"] >= 0:
        world.calls[instance["wait_head"]]["prev"] = c
    else:
        instance["wait_tail"] = c
    instance["wait_head"] = c
    instance["n_waiting"] += 1


@compiled
def remove(world: World, i: int, c: int) -> None:
    """Take call `c` out of the queue of instance `i`."""
    instance, call = world.instances[i], world.calls[c]
    if call["prev"] >= 0:
        world.calls[call["prev"]]["next"] = call["next"]
    else:
        instance["wait_head"] = call["next"]
    if call["next"] >= 0:
        world.calls[call["next"]]["prev"] = call["prev"]
    else:
        instance["wait_tail"] = call["prev"]
    call["next"] = -1
    call["prev"] = -1
    instance["n_waiting"] -= 1
