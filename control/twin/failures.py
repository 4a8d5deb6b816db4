"""What is done to a world from outside: an instance drains, fails, comes back; a client gives up; a new policy."""

from control.jit import compiled_apart, compiled_within
from control.policy.codes import (
    ABORTED,
    ACTIVE,
    BY_CLIENT,
    CANCELLED,
    DECODE,
    DOWN,
    DRAINING,
    HELD,
    IDLE,
    IN_QUEUE,
    INSTANCE_LOST,
    NO_CAUSE,
    PASSED_OVER,
    PREFILL,
    TRANSFER,
    UNFIT,
    UP,
    WAITING,
)
from control.policy.placement import hands_over, has_decoder, pins, places_conversations
from control.policy.tables import Ints
from control.twin.batching import book_idle, cut_run
from control.twin.dispatching import place
from control.twin.finish import book_run, unload
from control.twin.handlers import end_workflow, go_on
from control.twin.heap import unschedule
from control.twin.held import let_in
from control.twin.journal import note
from control.twin.kv import clear_kv, preempt_kv
from control.twin.phases import end_phase, lose_all
from control.twin.pins import context_tokens, lose_pin, release_call
from control.twin.placing import end_call, leave_group, mark_dirty
from control.twin.prefixes import drop_prefix
from control.twin.queue import push_front, remove
from control.twin.remote import lose_remote, meter_remote
from control.twin.world import World


@compiled_within
def take_off(world: World, i: int, c: int) -> None:
    """Call `c` loses its place on instance `i`, which is going down; what it generated is lost."""
    call = world.calls[c]
    lose_all(world, c)
    call["emitted"], call["kv"], call["chunk"], call["moving"] = 0, 0, 0, 0
    call["first_token_s"] = -1.0
    release_call(world, c)
    call["restarts"] += 1
    unload(world.instances[i], call)


@compiled_within
def abandon_calls(world: World, i: int) -> int:
    """Take every call off instance `i`; the number of them, rows chained from the old queue in `next`."""
    instance = world.instances[i]
    while instance["n_running"] > 0:
        instance["n_running"] -= 1
        c = world.running[i, instance["n_running"]]
        preempt_kv(world, i, c)
        push_front(world, i, c)
    return instance["wait_head"]


@compiled_within
def fail(world: World, i: int) -> None:
    """Instance `i` fails: its KV is lost, its unfinished calls are placed anew from their beginning."""
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    if instance["state"] == DOWN:
        return
    abort_run(world, i)
    instance["state"] = DOWN
    lose_pins(world, i)
    c = abandon_calls(world, i)
    while c >= 0:
        after = world.calls[c]["next"]
        remove(world, i, c)
        if world.calls[c]["remnant"] >= 0:
            drop_prefix(world, i, world.calls[c]["remnant"])
        take_off(world, i, c)
        if world.calls[c]["cause"] == BY_CLIENT:
            give_up(world, c)
        else:
            place(world, c)
        go_on(world, world.calls[c]["workflow"])
        c = after
    clear_kv(world, i)
    instance["accounted_s"] = now_s
    instance["ready_s"] = now_s
    replace_held(world)


@compiled_apart
def abort_run(world: World, i: int) -> None:
    """Stop the run of instance `i` at once: its energy is booked and shared by the calls, its tokens are lost."""
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    if instance["run"] == IDLE:
        book_idle(world, i, now_s)
        return
    joules = book_run(world, i)
    for r in range(instance["n_running"]):
        world.calls[world.running[i, r]]["energy_j"] += joules / instance["n_running"]
    instance["run"] = IDLE
    unschedule(world.runs, i)


@compiled_within
def empty_queue(world: World, i: int) -> None:
    """Place the calls that wait for instance `i`, which is down, anew."""
    c = world.instances[i]["wait_head"]
    while c >= 0:
        after = world.calls[c]["next"]
        remove(world, i, c)
        if world.calls[c]["remnant"] >= 0:
            drop_prefix(world, i, world.calls[c]["remnant"])
        take_off(world, i, c)
        place(world, c)
        go_on(world, world.calls[c]["workflow"])
        c = after


@compiled_within
def suspend(world: World, i: int) -> None:
    """Real server `i` is taken to be dead: who waits for it goes elsewhere; what it has, its connections tell."""
    if world.instances[i]["state"] == DOWN:
        return
    world.instances[i]["state"] = DOWN
    lose_pins(world, i)
    empty_queue(world, i)
    clear_kv(world, i)
    replace_held(world)


@compiled_within
def send_again(world: World, c: int, tried: Ints) -> None:
    """Call `c`, which its real server failed before the first byte, is placed anew, on none of `tried` (-1: none)."""
    call, instances = world.calls[c], world.instances
    i = call["instance"]
    meter_remote(world, i)
    lose_remote(world, i, c)
    take_off(world, i, c)
    for k in range(len(tried)):
        if tried[k] >= 0 and instances[tried[k]]["state"] == UP:
            instances[tried[k]]["state"] = PASSED_OVER
    place(world, c)
    for k in range(len(tried)):
        if tried[k] >= 0 and instances[tried[k]]["state"] == PASSED_OVER:
            instances[tried[k]]["state"] = UP
    mark_dirty_if_idle(world, i)
    go_on(world, call["workflow"])


@compiled_within
def come_back(world: World, i: int) -> None:
    """Instance `i` is back, empty, or ends its drain."""
    instance = world.instances[i]
    if instance["state"] == DOWN:
        instance["accounted_s"] = world.clock[0]["now_s"]
        instance["run"] = IDLE
    instance["state"] = UP
    mark_dirty(world, i)


@compiled_within
def lose_pins(world: World, i: int) -> None:
    """The conversations pinned to instance `i`, which failed, have lost their KV."""
    for s in range(len(world.pins)):
        if world.pins[s]["instance"] == i:
            lose_pin(world, s, INSTANCE_LOST)


@compiled_within
def begin_drain(world: World, i: int) -> None:
    """Instance `i` is given no new calls and finishes what it has; its conversations move at their next turn."""
    world.instances[i]["state"] = DRAINING
    replace_held(world)


@compiled_within
def give_up(world: World, c: int) -> None:
    """Call `c`, which is nowhere any more, ends because its client gave it up."""
    release_call(world, c)
    end_call(world, c, CANCELLED, BY_CLIENT)
    leave_group(world, c)


@compiled_within
def cancel_call(world: World, c: int) -> None:
    """The client gives up open call `c`: at once, or at the next batch boundary where it runs."""
    call = world.calls[c]
    state, i = call["state"], call["instance"]
    if state == PREFILL or state == DECODE:
        call["cause"] = BY_CLIENT
        if world.instances[i]["remote"] == 1:
            note(world, ABORTED, c, i)
        else:
            cut_run(world, i, world.clock[0]["now_s"])
        return
    if state == HELD:
        let_in(world, c)
    elif state == TRANSFER:
        unschedule(world.transfers, c)
        end_phase(world, c, IN_QUEUE)
    else:
        end_phase(world, c, IN_QUEUE)
        remove(world, i, c)
        unload(world.instances[i], call)
        if call["remnant"] >= 0:
            drop_prefix(world, i, call["remnant"])
        mark_dirty_if_idle(world, i)
    give_up(world, c)


@compiled_within
def abandon(world: World, c: int) -> None:
    """The client of call `c` has gone; its workflow may go on."""
    w = world.calls[c]["workflow"]
    cancel_call(world, c)
    go_on(world, w)


@compiled_within
def mark_dirty_if_idle(world: World, i: int) -> None:
    """Have instance `i` planned, unless a run is under way, after which it is."""
    if world.instances[i]["run"] == IDLE and world.instances[i]["state"] != DOWN:
        mark_dirty(world, i)


@compiled_within
def give_up_workflow(world: World, w: int) -> bool:
    """The client gives up workflow `w`; False: it is not under way."""
    workflow = world.workflows[w]
    if workflow["state"] != ACTIVE or workflow["cause"] != NO_CAUSE:
        return False
    workflow["cause"] = BY_CLIENT
    if workflow["open_calls"] == 0:
        if workflow["open_end"] == 0:
            workflow["tool_s"] -= workflow["group_done_s"] - world.clock[0]["now_s"]
        unschedule(world.timers, w)
        end_workflow(world, w)
        return True
    for c in range(workflow["first_call"], workflow["next_call"]):
        state = world.calls[c]["state"]
        if state == WAITING or state == PREFILL or state == DECODE or state == HELD or state == TRANSFER:
            cancel_call(world, c)
    go_on(world, w)
    return True


@compiled_within
def replace_held(world: World) -> None:
    """After a change of fleet or policy: held calls that no decoder may ever take are placed anew or refused."""
    c = world.clock[0]["held_head"]
    while c >= 0:
        tokens = context_tokens(world, c)
        if not places_conversations(world.policy[0]) or not has_decoder(world.policy[0], world.instances, tokens):
            let_in(world, c)
            place(world, c)
            go_on(world, world.calls[c]["workflow"])
            c = world.clock[0]["held_head"]  # what has just ended may have let in others
        else:
            c = world.calls[c]["next"]


@compiled_within
def stay(world: World, c: int) -> None:
    """Call `c`, if it was to go on elsewhere after its prefill, does all its work where it is."""
    call = world.calls[c]
    if call["handoff"] == 1 and (call["state"] == WAITING or call["state"] == PREFILL):
        call["handoff"] = 0
        call["limit"] = min(call["limit"], world.instances[call["instance"]]["max_model_len"] - call["input_tokens"])


@compiled_within
def switch_policy(world: World, dispatch: int, queue: int) -> None:
    """Put another policy in force: pins that it does not keep are released, held calls are placed by it."""
    world.policy[0]["dispatch"] = dispatch
    world.policy[0]["queue"] = queue
    if not pins(world.policy[0]):
        for s in range(len(world.pins)):
            lose_pin(world, s, UNFIT)
    if not hands_over(world.policy[0]):
        for c in range(len(world.calls)):
            stay(world, c)
    replace_held(world)
