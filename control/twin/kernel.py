"""The loop of the twin: take the earliest event, handle it, plan the instances it left at a batch boundary.

Everything that happens at one instant happens before anything is planned at that instant, so the outcome does not
depend on the order in which simultaneous events are taken. Runs end before KV arrives, that before tools return, those
before idle contexts expire, and these before workflows arrive.
"""

import math

from control.jit import compiled, compiled_within
from control.policy.codes import DOWN, IDLE
from control.twin.batching import book_idle, plan
from control.twin.conversations import retry_held
from control.twin.handlers import on_arrival, on_arrival_of_kv, on_run_end, on_tool_return
from control.twin.heap import next_time
from control.twin.journal import is_journal_half_full
from control.twin.pins import on_expiry
from control.twin.remote import meter_remote, send_waiting
from control.twin.world import World


@compiled
def next_arrival_s(world: World) -> float:
    """When the next workflow arrives, s; inf after the last."""
    w = world.clock[0]["next_workflow"]
    return world.workflows[w]["arrival_s"] if w < len(world.workflows) else math.inf


@compiled
def next_event_s(world: World) -> float:
    """When the next event falls, s; inf when nothing is left to happen."""
    moves_s = min(next_time(world.transfers), next_time(world.expiries))
    return min(next_time(world.runs), next_time(world.timers), next_arrival_s(world), moves_s)


@compiled_within
def handle_next(world: World, at_s: float) -> None:
    """Handle the one event that falls at `at_s`; it may have made room for calls that are held."""
    world.clock[0]["now_s"] = at_s
    world.clock[0]["events"] += 1
    if next_time(world.runs) == at_s:
        on_run_end(world, world.runs.order[0])
    elif next_time(world.transfers) == at_s:
        on_arrival_of_kv(world, world.transfers.order[0])
    elif next_time(world.timers) == at_s:
        on_tool_return(world, world.timers.order[0])
    elif next_time(world.expiries) == at_s:
        on_expiry(world, world.expiries.order[0])
    else:
        on_arrival(world)
    if world.clock[0]["n_held"] > 0:
        retry_held(world)


@compiled_within
def plan_dirty(world: World) -> None:
    """Plan every instance that stands at a batch boundary."""
    clock = world.clock[0]
    for k in range(clock["n_dirty"]):
        i = world.dirty[k]
        world.instances[i]["dirty"] = 0
        if world.instances[i]["run"] == IDLE and world.instances[i]["state"] != DOWN:
            if world.instances[i]["remote"] == 1:
                send_waiting(world, i)
            else:
                plan(world, i)
    clock["n_dirty"] = 0


@compiled
def advance(world: World, until_s: float) -> bool:
    """Let everything happen that falls at or before `until_s`.

    Returns whether it was reached; False: the journal is half full, drain it and call again.
    """
    while True:
        plan_dirty(world)
        at_s = next_event_s(world)
        if at_s > until_s or at_s == math.inf:
            break
        if is_journal_half_full(world):
            return False
        while next_event_s(world) == at_s:
            handle_next(world, at_s)
    if until_s < math.inf:
        world.clock[0]["now_s"] = until_s
    return True


@compiled
def settle_energy(world: World) -> None:
    """Book the idle draw of every idle instance up to now."""
    for i in range(len(world.instances)):
        instance = world.instances[i]
        if instance["remote"] == 1:
            meter_remote(world, i)
        elif instance["run"] == IDLE and instance["state"] != DOWN:
            book_idle(world, i, world.clock[0]["now_s"])
