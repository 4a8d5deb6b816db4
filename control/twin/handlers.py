"""The events of the model: a workflow arrives, a run ends, a tool returns; an instance drains, fails, comes back."""

from control.jit import compiled, compiled_apart
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
    DOWN,
    IDLE,
    NO_CAUSE,
    PLANNED,
    UP,
    WORKFLOW_ENDED,
    WORKFLOW_ENDED_ENTRY,
)
from control.twin.batching import book_idle
from control.twin.finish import finish_run, unload
from control.twin.heap import schedule, unschedule
from control.twin.journal import note
from control.twin.kv import clear_kv, preempt_kv
from control.twin.phases import advance_meters, lose_all
from control.twin.placing import end_call, leave_group, mark_dirty, place
from control.twin.prefixes import drop_prefix
from control.twin.queue import push_front, remove
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


@compiled
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
    note(world, WORKFLOW_ENDED_ENTRY, w, -1)


@compiled
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


@compiled
def move_on(world: World, w: int) -> None:
    """Go on with a workflow none of whose calls is open: wait for its tools, start a group, or end."""
    workflow = world.workflows[w]
    end = workflow["first_call"] + workflow["n_calls"]
    while workflow["open_calls"] == 0:
        close_group(world, w)
        if workflow["next_call"] == end or workflow["cause"] != NO_CAUSE:
            end_workflow(world, w)
            return
        if workflow["group_done_s"] > world.clock[0]["now_s"]:
            workflow["tool_s"] += workflow["group_done_s"] - world.calls[workflow["critical"]]["finished_s"]
            schedule(world.timers, w, workflow["group_done_s"])
            return
        start_group(world, w)


@compiled
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
    world.remaining[w, :] = world.templates[workflow["kind"], :]
    plan_workflow(world.templates, world.steps, workflow)
    move_on(world, w)


@compiled
def on_tool_return(world: World, w: int) -> None:
    """Tool or think time of workflow `w` is over."""
    unschedule(world.timers, w)
    move_on(world, w)


@compiled
def on_run_end(world: World, i: int) -> None:
    """The run of instance `i` ends: its completed calls move their workflows on, and the batch is planned anew."""
    ended = finish_run(world, i)
    world.instances[i]["run"] = IDLE
    unschedule(world.runs, i)
    mark_dirty(world, i)
    for k in range(ended):
        c = world.ended[k]
        call = world.calls[c]
        learn_step(world.costs, world.instances, world.steps, call)
        end_call(world, c, COMPLETED, NO_CAUSE)
        world.workflows[call["workflow"]]["attained_s"] += call["finished_s"] - call["started_s"]
        leave_group(world, c)
        if world.workflows[call["workflow"]]["open_calls"] == 0:
            move_on(world, call["workflow"])


@compiled
def take_off(world: World, i: int, c: int) -> None:
    """Call `c` loses its place on instance `i`, which is going down; what it generated is lost."""
    call = world.calls[c]
    lose_all(world, c)
    call["emitted"], call["kv"], call["chunk"] = 0, 0, 0
    call["first_token_s"] = -1.0
    call["restarts"] += 1
    unload(world.instances[i], call)


@compiled
def abandon_calls(world: World, i: int) -> int:
    """Take every call off instance `i`; the number of them, rows chained from the old queue in `next`."""
    instance = world.instances[i]
    while instance["n_running"] > 0:
        instance["n_running"] -= 1
        c = world.running[i, instance["n_running"]]
        preempt_kv(world, i, c)
        push_front(world, i, c)
    return instance["wait_head"]


@compiled_apart
def kill(world: World, i: int) -> None:
    """Instance `i` fails: its KV is lost, its unfinished calls are placed anew from their beginning."""
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    if instance["state"] == DOWN:
        return
    abort_run(world, i)
    instance["state"] = DOWN
    c = abandon_calls(world, i)
    while c >= 0:
        after = world.calls[c]["next"]
        remove(world, i, c)
        if world.calls[c]["remnant"] >= 0:
            drop_prefix(world, i, world.calls[c]["remnant"])
        take_off(world, i, c)
        if not place(world, c) and world.workflows[world.calls[c]["workflow"]]["open_calls"] == 0:
            move_on(world, world.calls[c]["workflow"])
        c = after
    clear_kv(world, i)
    instance["accounted_s"] = now_s


@compiled_apart
def abort_run(world: World, i: int) -> None:
    """Stop the run of instance `i` at once: its energy is booked and shared by the calls, its tokens are lost."""
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    if instance["run"] == IDLE:
        book_idle(world, i, now_s)
        return
    seconds = now_s - instance["run_start_s"]
    joules = instance["run_w"] * seconds
    instance["energy_j"] += joules
    instance["busy_s"] += seconds
    advance_meters(world, i, seconds)
    instance["last_busy_s"] = now_s
    instance["idle_after_j"] = 0.0
    for r in range(instance["n_running"]):
        world.calls[world.running[i, r]]["energy_j"] += joules / instance["n_running"]
    instance["run"] = IDLE
    unschedule(world.runs, i)


@compiled_apart
def revive(world: World, i: int) -> None:
    """Instance `i` is back, empty, or ends its drain."""
    instance = world.instances[i]
    if instance["state"] == DOWN:
        instance["accounted_s"] = world.clock[0]["now_s"]
        instance["run"] = IDLE
    instance["state"] = UP
    mark_dirty(world, i)
