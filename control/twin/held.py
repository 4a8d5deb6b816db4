"""Calls that wait for a decoder with room for their KV: a doubly linked list through the call table, in order."""

from control.jit import compiled
from control.policy.codes import HELD, IN_HOLD, IN_QUEUE
from control.twin.phases import end_phase
from control.twin.world import World


@compiled
def hold(world: World, c: int) -> None:
    """Call `c` waits, behind those that wait already, until a decoder has room for its KV."""
    call, clock = world.calls[c], world.clock[0]
    call["state"] = HELD
    call["instance"] = -1
    call["phase"] = IN_HOLD
    call["phase_s"] = clock["now_s"]
    call["prev"] = clock["held_tail"]
    call["next"] = -1
    if clock["held_tail"] >= 0:
        world.calls[clock["held_tail"]]["next"] = c
    else:
        clock["held_head"] = c
    clock["held_tail"] = c
    clock["n_held"] += 1
    world.workflows[call["workflow"]]["held"] += 1


@compiled
def let_in(world: World, c: int) -> None:
    """Call `c` is held no more."""
    call, clock = world.calls[c], world.clock[0]
    if call["prev"] >= 0:
        world.calls[call["prev"]]["next"] = call["next"]
    else:
        clock["held_head"] = call["next"]
    if call["next"] >= 0:
        world.calls[call["next"]]["prev"] = call["prev"]
    else:
        clock["held_tail"] = call["prev"]
    call["next"] = -1
    call["prev"] = -1
    clock["n_held"] -= 1
    world.workflows[call["workflow"]]["held"] -= 1
    end_phase(world, c, IN_QUEUE)
