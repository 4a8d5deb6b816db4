"""What placing a call comes to: into a queue, or refused; and how a call ends."""

import math

from control.jit import compiled, compiled_apart
from control.policy.codes import (
    CALL_ENDED,
    IDLE,
    NO_CAUSE,
    NO_INSTANCE,
    PLACED,
    REFUSED,
    TOO_LONG,
)
from control.policy.dispatch import best_instance
from control.policy.eligible import fits_any_context
from control.policy.vtc import vtc_arrive
from control.twin.batching import cut_run
from control.twin.journal import note
from control.twin.phases import begin_waiting
from control.twin.pins import release_call
from control.twin.queue import push_back
from control.twin.world import World


@compiled
def mark_dirty(world: World, i: int) -> None:
    """Have instance `i` planned before time moves on."""
    if world.instances[i]["dirty"] == 0:
        world.instances[i]["dirty"] = 1
        world.dirty[world.clock[0]["n_dirty"]] = i
        world.clock[0]["n_dirty"] += 1


@compiled
def end_call(world: World, c: int, state: int, cause: int) -> None:
    """Call `c` ended, whatever the outcome."""
    call = world.calls[c]
    call["state"] = state
    call["cause"] = cause
    call["finished_s"] = world.clock[0]["now_s"]
    world.clock[0]["ended_calls"] += 1
    note(world, CALL_ENDED, c, call["instance"])


@compiled
def leave_group(world: World, c: int) -> None:
    """Call `c` of the group under way has ended: the group is done when all have, tools included."""
    call = world.calls[c]
    workflow = world.workflows[call["workflow"]]
    is_last = workflow["next_call"] == workflow["first_call"] + workflow["n_calls"]
    done_s = call["finished_s"] + (0.0 if is_last else call["tool_s"])
    workflow["open_calls"] -= 1
    if workflow["critical"] < 0 or done_s >= workflow["group_done_s"]:
        workflow["critical"] = c
        workflow["group_done_s"] = done_s


@compiled_apart
def refuse(world: World, c: int) -> None:
    """No instance can take call `c`: it ends here, and its workflow with it unless it goes on."""
    call = world.calls[c]
    cause = NO_INSTANCE if fits_any_context(world.instances, call) else TOO_LONG
    call["instance"] = -1
    release_call(world, c)
    end_call(world, c, REFUSED, cause)
    leave_group(world, c)
    workflow = world.workflows[call["workflow"]]
    if workflow["go_on"] == 0 and workflow["cause"] == NO_CAUSE:
        workflow["cause"] = cause


@compiled
def record_placement(world: World, c: int, i: int) -> None:
    """Keep what the decision was taken on: both terms, the score, the runner-up."""
    call = world.calls[c]
    other = best_instance(world.instances, world.scores, world.clock[0]["rotation"], i)
    call["instance"] = i
    call["placed_s"] = world.clock[0]["now_s"]
    call["t_comp_s"] = world.t_comp_s[i]
    call["t_queue_s"] = world.instances[i]["queued_work_s"]
    call["score"] = world.scores[i]
    call["runner_up"] = other
    call["runner_up_score"] = world.scores[other] if other >= 0 else -math.inf


@compiled
def enqueue(world: World, c: int, i: int) -> None:
    """Put call `c` into the queue of instance `i` and have the instance look at its next batch boundary."""
    instance, call = world.instances[i], world.calls[c]
    call["limit"] = call["output_tokens"]
    if call["handoff"] == 0:
        call["limit"] = min(call["limit"], instance["max_model_len"] - call["input_tokens"])
    instance["queued_work_s"] += call["t_comp_s"]
    instance["dispatched_s"] += call["t_comp_s"]
    vtc_arrive(instance, world.counters[i], world.calls, call["workflow"])
    push_back(world, i, c)
    begin_waiting(world, i, c)
    note(world, PLACED, c, i)
    if instance["run"] == IDLE:
        mark_dirty(world, i)
    else:
        cut_run(world, i, world.clock[0]["now_s"])
