"""HexGen-Flow's own simulator, replayed step by step (HexGen-Flow, section 7).

Each instance keeps its own clock. The instance whose clock is earliest acts next: it runs one prefill alone, or one
decode iteration for its whole batch, or idles for a tick. It exists to reproduce the published figures; every other
question goes to the twin, which batches as real engines do.
"""

import math

from control.jit import compiled
from control.policy.budget import remaining_s, share_budget_s, use_template
from control.twin.artifact_queue import dequeue, enqueue, head
from control.twin.artifact_world import BALANCE, BLOCK_TOKENS, IDLE_TICK_S, SCORE_TIE, ArtifactWorld


@compiled
def artifact_score(world: ArtifactWorld, e: int, step: int) -> float:
    """score(e) = alpha T(base, step) / T(e, step) - (1 - alpha) W_e k_e / W_base, base = instance 0 (section 1)."""
    alpha, instance = world.state[0]["alpha"], world.instances[e]
    cost = world.step_s[0, step] / world.step_s[e, step]
    load = instance["dispatched_s"] * instance["load_weight"] / world.instances[0]["dispatched_s"]
    return alpha * cost - (1.0 - alpha) * load


@compiled
def balanced(world: ArtifactWorld, step: int) -> int:
    """Instance of the largest score, the first of equals; instance 0 while it has been given nothing."""
    best = 0
    if world.instances[0]["dispatched_s"] == 0.0:
        return best
    best_score = artifact_score(world, 0, step)
    for e in range(1, len(world.instances)):
        score = artifact_score(world, e, step)
        if score > best_score + SCORE_TIE:
            best, best_score = e, score
    return best


@compiled
def by_rotation(world: ArtifactWorld) -> int:
    """The next instance in turn."""
    state = world.state[0]
    turn = state["turn"]
    state["turn"] = (turn + 1) % len(world.instances)
    return turn


@compiled
def place_call(world: ArtifactWorld, c: int) -> None:
    """Dispatch call `c` to the queue of an instance."""
    call = world.calls[c]
    e = balanced(world, call["step"]) if world.state[0]["dispatch"] == BALANCE else by_rotation(world)
    call["t_comp_s"] = world.step_s[e, call["step"]]
    world.instances[e]["dispatched_s"] += call["t_comp_s"]
    enqueue(world, e, c)


@compiled
def next_ready_s(world: ArtifactWorld) -> float:
    """When the next call becomes ready, s; inf when none is pending."""
    return world.calls[world.pending[0]]["ready_s"] if world.state[0]["n_pending"] > 0 else math.inf


@compiled
def dispatch_ready(world: ArtifactWorld, now_s: float) -> None:
    """Dispatch all calls that became ready by `now_s`, in the order in which they did."""
    state, n = world.state[0], 0
    while n < state["n_pending"] and world.calls[world.pending[n]]["ready_s"] <= now_s:
        place_call(world, world.pending[n])
        n += 1
    if n > 0:
        state["n_pending"] -= n
        for k in range(state["n_pending"]):
            world.pending[k] = world.pending[k + n]


@compiled
def pend(world: ArtifactWorld, c: int) -> None:
    """File call `c` behind all that become ready before or with it."""
    state, k = world.state[0], world.state[0]["n_pending"]
    while k > 0 and world.calls[world.pending[k - 1]]["ready_s"] > world.calls[c]["ready_s"]:
        world.pending[k] = world.pending[k - 1]
        k -= 1
    world.pending[k] = c
    state["n_pending"] += 1


@compiled
def open_stage(world: ArtifactWorld, w: int, now_s: float) -> None:
    """Make the calls of the next stage ready and give each its budget (section 2)."""
    workflow, c = world.workflows[w], world.workflows[w]["next_call"]
    group = world.calls[c]["group"]
    while c < workflow["first_call"] + workflow["n_calls"] and world.calls[c]["group"] == group:
        call = world.calls[c]
        use_template(world.remaining, world.steps, w, call["step"])
        later_s = remaining_s(world.remaining, world.steps, w)
        own_s = world.steps[call["step"]]["mean_exec_s"]
        call["ready_s"] = now_s
        call["budget_s"] = share_budget_s(workflow["slo_s"], now_s - workflow["arrival_s"], own_s, later_s)
        pend(world, c)
        workflow["n_stage"] += 1
        c += 1
    workflow["next_call"] = c


@compiled
def end_call(world: ArtifactWorld, i: int, c: int) -> None:
    """Free the KV of call `c`; the last call of a stage opens the next stage or ends the workflow.

    Instances act in the order of their clocks before an iteration, so the call of a stage that is handled last need
    not be the one that ends last.
    """
    call, now_s = world.calls[c], world.instances[i]["clock_s"]
    w = call["workflow"]
    workflow = world.workflows[w]
    world.instances[i]["free"] += call["blocks"]
    call["finished_s"] = now_s
    workflow["finished_s"] = now_s
    workflow["n_stage"] -= 1
    if workflow["n_stage"] > 0:
        return
    if workflow["next_call"] < workflow["first_call"] + workflow["n_calls"]:
        open_stage(world, w, now_s)
    else:
        world.state[0]["n_open"] -= 1


@compiled
def prompt_blocks(input_tokens: int) -> int:
    """KV blocks of a prompt."""
    return (input_tokens + BLOCK_TOKENS - 1) // BLOCK_TOKENS


@compiled
def admit(world: ArtifactWorld, i: int) -> bool:
    """Prefill the first call of the queue alone, if its KV fits; whether it did. Nobody bypasses it.

    A prefill time below 0 steps the clock back; where that is before the call became ready, the instance idles on.
    """
    instance = world.instances[i]
    if instance["n_waiting"] == 0:
        return False
    place = head(world, i)
    c = world.waiting[i, place]
    call = world.calls[c]
    blocks = prompt_blocks(call["input_tokens"])
    if instance["free"] - blocks < instance["kept"]:
        return False
    dequeue(world, i, place)
    instance["free"] -= blocks
    call["blocks"] = blocks
    world.running[i, instance["n_running"]] = c
    instance["n_running"] += 1
    instance["clock_s"] += world.prefill_s[i, c]
    while instance["clock_s"] < call["ready_s"]:
        instance["clock_s"] += IDLE_TICK_S
    return True


@compiled
def decode_one(world: ArtifactWorld, i: int, c: int) -> bool:
    """One token of call `c`; whether it was the last.

    The call takes a block when its generated tokens exceed the tokens of the blocks it holds, from those that
    admissions leave free.
    """
    call = world.calls[c]
    call["generated"] += 1
    if call["generated"] > call["blocks"] * BLOCK_TOKENS:
        call["blocks"] += 1
        world.instances[i]["free"] -= 1
    return call["generated"] >= call["output_tokens"]


@compiled
def decode(world: ArtifactWorld, i: int) -> None:
    """One decode iteration for all running calls of instance `i`."""
    instance, kept = world.instances[i], 0
    instance["clock_s"] += instance["decode_s"]
    for k in range(instance["n_running"]):
        c = world.running[i, k]
        if decode_one(world, i, c):
            end_call(world, i, c)
        else:
            world.running[i, kept] = c
            kept += 1
    instance["n_running"] = kept


@compiled
def earliest_clock_s(world: ArtifactWorld, but: int) -> float:
    """The earliest clock of all instances but one, s."""
    earliest_s = math.inf
    for i in range(len(world.instances)):
        if i != but:
            earliest_s = min(earliest_s, world.instances[i]["clock_s"])
    return earliest_s


@compiled
def idle(world: ArtifactWorld, i: int) -> None:
    """Move the clock of instance `i` on: to the next ready call, or past the earliest other clock if that is sooner.

    Towards a call it goes in ticks, so it ends on the tick's grid and not on the call's own time.
    """
    ready_s, other_s = next_ready_s(world), earliest_clock_s(world, i)
    clock_s = world.instances[i]["clock_s"] + IDLE_TICK_S
    if ready_s > other_s:
        clock_s = max(clock_s, other_s)
    while clock_s < ready_s <= other_s and ready_s < math.inf:
        clock_s += IDLE_TICK_S
    world.instances[i]["clock_s"] = clock_s


@compiled
def earliest(world: ArtifactWorld) -> int:
    """Instance with the earliest clock, the first of equals."""
    best = 0
    for i in range(1, len(world.instances)):
        if world.instances[i]["clock_s"] < world.instances[best]["clock_s"]:
            best = i
    return best


@compiled
def replay(world: ArtifactWorld) -> None:
    """Run until every workflow has ended."""
    for w in range(len(world.workflows)):
        open_stage(world, w, world.workflows[w]["arrival_s"])
    while world.state[0]["n_open"] > 0:
        i = earliest(world)
        dispatch_ready(world, world.instances[i]["clock_s"])
        if not admit(world, i):
            if world.instances[i]["n_running"] > 0:
                decode(world, i)
            else:
                idle(world, i)
