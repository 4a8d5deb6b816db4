"""The events of the model: a workflow arrives, a run ends, KV arrives, a tool returns, an idle context expires."""

from control.jit import compiled, compiled_apart, compiled_within
from control.policy.budget import (
    learn_step,
    learn_template,
    plan_workflow,
    remaining_s,
    share_budget_s,
    use_template,
)
from control.policy.codes import (
    ACTIVE,
    BROKEN,
    CANCELLED,
    COMPLETED,
    DONE,
    IDLE,
    NO_CAUSE,
    PLANNED,
    WORKFLOW_ENDED,
    WORKFLOW_ENDED_ENTRY,
)
from control.twin.conversations import hand_over, on_transfer_end
from control.twin.dispatching import place
from control.twin.finish import finish_run
from control.twin.heap import schedule, unschedule
from control.twin.journal import note
from control.twin.pins import end_conversations, end_turn, release_call
from control.twin.placing import end_call, leave_group, mark_dirty
from control.twin.world import World


@compiled
def set_budgets(world: World, w: int, first: int, last: int) -> None:
    """Give calls first .. last - 1 of a stage that becomes ready their SLO budgets."""
    workflow, now_s = world.workflows[w], world.clock[0]["now_s"]
    for c in range(first, last):
        if c == first or world.calls[c]["step"] != world.calls[c - 1]["step"]:
            use_template(world.remaining, world.steps, w, world.calls[c]["step"])
    later_s = remaining_s(world.remaining, world.steps, w)
    elapsed_s = now_s - workflow["arrival_s"]
    for c in range(first, last):
        own_s = world.steps[world.calls[c]["step"]]["mean_exec_s"]
        world.calls[c]["ready_s"] = now_s
        world.calls[c]["deadline_s"] = workflow["arrival_s"] + workflow["slo_s"]
        world.calls[c]["budget_s"] = share_budget_s(workflow["slo_s"], elapsed_s, own_s, later_s)


@compiled
def group_end(world: World, first: int, end: int) -> int:
    """Row after the last call of the group that starts at `first`."""
    last = first + 1
    while last < end and world.calls[last]["group"] == world.calls[first]["group"]:
        last += 1
    return last


@compiled
def learn_stages(world: World, w: int) -> None:
    """Fold the stages that workflow `w` ran into the template of its kind."""
    workflow, counts = world.workflows[w], world.counts
    if world.kinds[workflow["kind"]]["declared"] == 1:
        return
    counts[:] = 0.0
    for c in range(workflow["first_call"], workflow["first_call"] + workflow["n_calls"]):
        call = world.calls[c]
        if c == workflow["first_call"] or call["group"] != world.calls[c - 1]["group"]:
            counts[call["step"]] += 1.0
        elif call["step"] != world.calls[c - 1]["step"]:
            counts[call["step"]] += 1.0
    learn_template(world.templates, world.kinds, workflow["kind"], counts)


@compiled
def last_ended(world: World, w: int) -> int:
    """The call of the group under way of workflow `w` that ended last."""
    workflow = world.workflows[w]
    c = workflow["next_call"] - 1
    last, group = c, world.calls[c]["group"]
    while c >= workflow["first_call"] and world.calls[c]["group"] == group:
        if world.calls[c]["finished_s"] > world.calls[last]["finished_s"]:
            last = c
        c -= 1
    return last


@compiled
def close_group(world: World, w: int) -> None:
    """All calls of the group under way of workflow `w` have ended: note which one it waited for."""
    workflow = world.workflows[w]
    if workflow["cause"] != NO_CAUSE:
        workflow["critical"] = last_ended(world, w)
    if workflow["critical"] >= 0:
        world.calls[workflow["critical"]]["critical"] = 1


@compiled
def was_served(world: World, w: int) -> bool:
    """Whether any call of workflow `w` has completed."""
    workflow = world.workflows[w]
    for c in range(workflow["first_call"], workflow["first_call"] + workflow["n_calls"]):
        if world.calls[c]["state"] == COMPLETED:
            return True
    return False


@compiled_apart
def end_workflow(world: World, w: int) -> None:
    """Workflow `w` ends now: done, or broken with its remaining calls cancelled, or because none was served."""
    workflow, clock = world.workflows[w], world.clock[0]
    end = workflow["first_call"] + workflow["n_calls"]
    if workflow["cause"] == NO_CAUSE and not was_served(world, w):
        workflow["cause"] = world.calls[end - 1]["cause"]
    for c in range(workflow["next_call"], end):
        if world.calls[c]["state"] == PLANNED:
            end_call(world, c, CANCELLED, WORKFLOW_ENDED)
    workflow["state"] = DONE if workflow["cause"] == NO_CAUSE else BROKEN
    if workflow["state"] == DONE:
        learn_stages(world, w)
    workflow["finished_s"] = clock["now_s"]
    clock["open_workflows"] -= 1
    if workflow["pins"] > 0:
        end_conversations(world, w)
    note(world, WORKFLOW_ENDED_ENTRY, w, -1)


@compiled_within
def start_group(world: World, w: int) -> None:
    """The next group of workflow `w` becomes ready: budgets, then a placement for each of its calls."""
    workflow = world.workflows[w]
    first = workflow["next_call"]
    last = group_end(world, first, workflow["first_call"] + workflow["n_calls"])
    workflow["next_call"] = last
    workflow["open_calls"] = last - first
    workflow["critical"] = -1
    workflow["group_done_s"] = world.clock[0]["now_s"]
    set_budgets(world, w, first, last)
    for c in range(first, last):
        place(world, c)


@compiled_apart
def move_on(world: World, w: int) -> None:
    """Go on with a workflow none of whose calls is open: wait for its tools, start a group, or end."""
    workflow = world.workflows[w]
    end = workflow["first_call"] + workflow["n_calls"]
    while workflow["open_calls"] == 0:
        close_group(world, w)
        if workflow["open_end"] == 1 and workflow["next_call"] == end and workflow["cause"] == NO_CAUSE:
            return
        if workflow["next_call"] == end or workflow["cause"] != NO_CAUSE:
            end_workflow(world, w)
            return
        if workflow["group_done_s"] > world.clock[0]["now_s"]:
            workflow["tool_s"] += workflow["group_done_s"] - world.calls[workflow["critical"]]["finished_s"]
            schedule(world.timers, w, workflow["group_done_s"])
            return
        start_group(world, w)


@compiled_within
def go_on(world: World, w: int) -> None:
    """Go on with workflow `w` if none of its calls is open."""
    if world.workflows[w]["open_calls"] == 0:
        move_on(world, w)


@compiled_within
def on_arrival(world: World) -> None:
    """The next workflow arrives."""
    clock = world.clock[0]
    w = clock["next_workflow"]
    clock["next_workflow"] += 1
    clock["open_workflows"] += 1
    workflow = world.workflows[w]
    workflow["state"] = ACTIVE
    workflow["next_call"] = workflow["first_call"]
    workflow["group_done_s"] = clock["now_s"]
    workflow["critical"] = -1
    for k in range(len(world.steps)):
        world.remaining[w, k] = world.templates[workflow["kind"], k]
    plan_workflow(world.templates, world.steps, workflow)
    move_on(world, w)


@compiled_within
def on_tool_return(world: World, w: int) -> None:
    """Tool or think time of workflow `w` is over."""
    unschedule(world.timers, w)
    move_on(world, w)


@compiled_within
def settle_call(world: World, c: int) -> None:
    """Call `c` has left its instance, completed or not: what follows for its step, conversation and workflow."""
    call = world.calls[c]
    end_call(world, c, call["state"], call["cause"])
    if call["state"] == COMPLETED:
        learn_step(world.costs, world.instances, world.steps, call)
        world.workflows[call["workflow"]]["attained_s"] += call["finished_s"] - call["started_s"]
        end_turn(world, c)
    else:
        release_call(world, c)
    leave_group(world, c)
    go_on(world, call["workflow"])


@compiled_within
def on_run_end(world: World, i: int) -> None:
    """The run of instance `i` ends: its completed calls move their workflows on, and the batch is planned anew."""
    ended = finish_run(world, i)
    world.instances[i]["run"] = IDLE
    unschedule(world.runs, i)
    mark_dirty(world, i)
    for k in range(ended):
        settle_call(world, world.ended[k])
    for k in range(world.clock[0]["n_handed"]):
        c = world.ended[len(world.ended) - 1 - k]
        hand_over(world, i, c)
        go_on(world, world.calls[c]["workflow"])


@compiled_within
def on_arrival_of_kv(world: World, c: int) -> None:
    """KV of call `c` arrives where it goes on."""
    on_transfer_end(world, c)
    go_on(world, world.calls[c]["workflow"])
