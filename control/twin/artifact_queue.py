"""Queues of the replay: how a call enters one, which one an instance looks at first, how it leaves."""

from control.jit import compiled
from control.policy.tables import Ints
from control.policy.urgency import urgency_s
from control.twin.artifact_world import COUNTER, FIRST, URGENT, ArtifactWorld


@compiled
def lift_counter(world: ArtifactWorld, i: int, w: int) -> None:
    """Lift a workflow with nothing waiting at `i` to the smallest counter of those that wait there (VTC, section 6)."""
    lowest = -1.0
    for other in range(len(world.workflows)):
        if world.queued[i, other] > 0 and (lowest < 0.0 or world.counters[i, other] < lowest):
            lowest = world.counters[i, other]
    if lowest > world.counters[i, w]:
        world.counters[i, w] = lowest


@compiled
def enqueue(world: ArtifactWorld, i: int, c: int) -> None:
    """Append call `c` to the queue of instance `i`."""
    instance, w = world.instances[i], world.calls[c]["workflow"]
    if world.seen[i, w] < 0:
        world.seen[i, w] = instance["n_seen"]
        instance["n_seen"] += 1
    if world.queued[i, w] == 0:
        lift_counter(world, i, w)
    world.queued[i, w] += 1
    world.waiting[i, instance["n_waiting"]] = c
    instance["n_waiting"] += 1


@compiled
def drop_at(row: Ints, place: int, n: int) -> None:
    """Close the gap at `place` of the first `n` entries of `row`."""
    for k in range(place, n - 1):
        row[k] = row[k + 1]


@compiled
def dequeue(world: ArtifactWorld, i: int, place: int) -> None:
    """Take the call at `place` out of the queue of instance `i`; serving charges its workflow the input tokens."""
    instance, call = world.instances[i], world.calls[world.waiting[i, place]]
    world.queued[i, call["workflow"]] -= 1
    world.counters[i, call["workflow"]] += call["input_tokens"]
    drop_at(world.waiting[i], place, instance["n_waiting"])
    instance["n_waiting"] -= 1


@compiled
def precedes(world: ArtifactWorld, i: int, c: int, other: int) -> bool:
    """Whether waiting call `c` goes before `other`, which stands ahead of it in the queue of instance `i`."""
    order, now_s = world.state[0]["queue"], world.instances[i]["clock_s"]
    call, rival = world.calls[c], world.calls[other]
    if order == URGENT:
        return urgency_s(call, now_s) > urgency_s(rival, now_s)
    if order == COUNTER:
        mine, theirs = world.counters[i, call["workflow"]], world.counters[i, rival["workflow"]]
        if mine == theirs:
            return world.seen[i, call["workflow"]] < world.seen[i, rival["workflow"]]
        return mine < theirs
    return call["t_comp_s"] < rival["t_comp_s"]


@compiled
def head(world: ArtifactWorld, i: int) -> int:
    """Place in the queue of instance `i` of the call to admit next; the first one wins ties."""
    best = 0
    if world.state[0]["queue"] == FIRST:
        return best
    for place in range(1, world.instances[i]["n_waiting"]):
        if precedes(world, i, world.waiting[i, place], world.waiting[i, best]):
            best = place
    return best
