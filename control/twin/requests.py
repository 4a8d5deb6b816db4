"""Requests of clients as they come: workflows that grow a call at a time, and nobody knows how many will follow."""

from control.jit import compiled_apart, compiled_within
from control.policy.budget import plan_workflow, running_mean
from control.policy.codes import ACTIVE, COMPLETED, DOWN
from control.policy.tables import Ints
from control.twin.conversations import hand_over
from control.twin.dispatching import place
from control.twin.handlers import go_on, move_on, set_budgets, settle_call
from control.twin.placing import mark_dirty
from control.twin.remote import (
    begin_answer,
    correct_lengths,
    grow_to,
    leave_remote_prefiller,
    leave_server,
    meter_all_remote,
    meter_remote,
    send_waiting,
    shrink_to,
)
from control.twin.slo import STANDALONE_FACTOR, standalone_s
from control.twin.world import World


@compiled_within
def open_workflow(world: World, w: int) -> None:
    """Workflow `w` arrives with its first call."""
    workflow = world.workflows[w]
    world.clock[0]["open_workflows"] += 1
    workflow["state"] = ACTIVE
    workflow["next_call"] = workflow["first_call"]
    for k in range(len(world.steps)):
        world.remaining[w, k] = world.templates[workflow["kind"], k]
    plan_workflow(world.templates, world.steps, workflow)


@compiled_within
def begin_group(world: World, w: int, c: int) -> None:
    """Call `c` begins a new group of workflow `w`; the time since the last one ended was tool or think time."""
    workflow, now_s = world.workflows[w], world.clock[0]["now_s"]
    if c > workflow["first_call"]:
        before = world.calls[workflow["critical"] if workflow["critical"] >= 0 else c - 1]
        before["tool_s"] = now_s - workflow["group_done_s"]
        workflow["tool_s"] += before["tool_s"]
        step = world.steps[before["step"]]
        step["mean_tool_s"] = running_mean(step["mean_tool_s"], before["tool_s"], max(1.0, step["seen"]))
        world.calls[c]["group"] = world.calls[c - 1]["group"] + 1
    workflow["critical"] = -1
    workflow["group_done_s"] = now_s


@compiled_within
def grant(world: World, w: int, c: int) -> None:
    """Workflow `w`, which came without an SLO, gets one that leaves its call `c` five times its standalone time."""
    workflow = world.workflows[w]
    step = world.steps[world.calls[c]["step"]]
    known = world.calls[c]["output_tokens"]
    world.calls[c]["output_tokens"] = max(1, int(step["mean_output"]))
    own_s = STANDALONE_FACTOR * standalone_s(world.costs, world.instances, world.calls, c, c + 1)
    world.calls[c]["output_tokens"] = known
    workflow["slo_s"] = max(workflow["slo_s"], world.clock[0]["now_s"] - workflow["arrival_s"] + own_s)


@compiled_within
def request(world: World, w: int, c: int) -> None:
    """Call `c`, the row after the last of workflow `w`, has come; it runs beside those of `w` that are open."""
    workflow = world.workflows[w]
    meter_all_remote(world)
    if workflow["state"] != ACTIVE:
        open_workflow(world, w)
    if workflow["open_calls"] == 0:
        begin_group(world, w, c)
    else:
        world.calls[c]["group"] = world.calls[c - 1]["group"]
    workflow["next_call"] = c + 1
    workflow["n_calls"] += 1
    workflow["open_calls"] += 1
    if workflow["granted"] == 1:
        grant(world, w, c)
    set_budgets(world, w, c, c + 1)
    place(world, c)
    go_on(world, w)


@compiled_within
def answered(world: World, c: int, numbers: Ints) -> None:
    """The answer of call `c` has ended: state, cause, input, generated and cached tokens in `numbers`."""
    i = world.calls[c]["instance"]
    meter_remote(world, i)
    if numbers[0] == COMPLETED:
        begin_answer(world, c, numbers[5])
        grow_to(world, i, c, numbers[3])
        shrink_to(world, i, c, numbers[3])
        correct_lengths(world, i, c, numbers[2], numbers[4])
        world.calls[c]["output_tokens"] = world.calls[c]["emitted"]
    leave_server(world, i, c, numbers[0], numbers[1])
    if world.instances[i]["state"] != DOWN:
        mark_dirty(world, i)
    settle_call(world, c)


@compiled_within
def prefilled(world: World, c: int) -> None:
    """The prefill leg of call `c` has been answered."""
    i = world.calls[c]["instance"]
    meter_remote(world, i)
    leave_remote_prefiller(world, i, c)
    if world.instances[i]["state"] != DOWN:
        mark_dirty(world, i)
    hand_over(world, i, c)
    go_on(world, world.calls[c]["workflow"])


@compiled_within
def close(world: World, w: int) -> None:
    """No more calls of workflow `w` will come: it ended when its last call did, or ends with those that are open."""
    workflow = world.workflows[w]
    workflow["open_end"] = 0
    if workflow["state"] == ACTIVE and workflow["open_calls"] == 0:
        ended_s = workflow["group_done_s"]
        move_on(world, w)
        workflow["finished_s"] = ended_s


@compiled_apart
def send_dirty(world: World) -> None:
    """Send what waits for remote instances that have come to have room; simulated ones are left to be planned."""
    clock, kept = world.clock[0], 0
    for k in range(clock["n_dirty"]):
        i = world.dirty[k]
        if world.instances[i]["remote"] == 0:
            world.dirty[kept] = i
            kept += 1
            continue
        world.instances[i]["dirty"] = 0
        if world.instances[i]["state"] != DOWN:
            send_waiting(world, i)
    clock["n_dirty"] = kept
