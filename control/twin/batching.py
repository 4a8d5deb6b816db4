"""Continuous batching of one instance: what the next run holds, how long it lasts, what it leaves behind.

At a batch boundary an instance (1) preempts the youngest calls until every decoding call can take its next token,
(2) gives its token budget to decoding calls, then to prefills under way in order of admission, (3) admits waiting
calls while seats, budget and KV blocks last; nobody bypasses the call picked first. With prefill tokens the run is one
mixed iteration. Without, decode iterations are summed in closed form up to the next change of the batch
(fast-forward); the reference mode plans them one at a time.
"""

from control.jit import compiled, compiled_apart
from control.policy.codes import DECODE, DECODING, IDLE, IN_PREEMPTION, MIXED, PREEMPTED, PREFILL
from control.policy.cost import chunk_area, decode_run_ms, mixed_ms
from control.policy.pick import order_moves, pick_waiting
from control.policy.placement import blocks_for, transfer_ms
from control.policy.power import run_w
from control.policy.tables import Record
from control.policy.vtc import vtc_charge
from control.twin.heap import schedule, unschedule
from control.twin.journal import note
from control.twin.kv import admit_kv, available, can_admit, find_hit, other_hit, preempt_kv, reach_of
from control.twin.phases import begin_running, end_phase, hold_up
from control.twin.pins import note_recompute, pin_row, pinned_to
from control.twin.queue import push_front, remove
from control.twin.world import World


@compiled
def growth_blocks(world: World, i: int, n: int) -> int:
    """Blocks that the decoding calls of instance `i` need for their next `n` tokens."""
    size, need = world.instances[i]["block_size"], 0
    for r in range(world.instances[i]["n_running"]):
        call = world.calls[world.running[i, r]]
        if call["state"] == DECODE:
            need += blocks_for(call["kv"] + n, size) - call["base"] - call["own"]
    return need


@compiled_apart
def preempt_youngest(world: World, i: int) -> None:
    """Send the call admitted last back to the head of the queue; its context will be recomputed."""
    instance = world.instances[i]
    instance["n_running"] -= 1
    c = world.running[i, instance["n_running"]]
    preempt_kv(world, i, c)
    end_phase(world, c, IN_PREEMPTION)
    world.calls[c]["preemptions"] += 1
    world.calls[c]["chunk"] = 0
    instance["preemptions"] += 1
    push_front(world, i, c)
    note(world, PREEMPTED, c, i)


@compiled
def make_room(world: World, i: int) -> bool:
    """Preempt until every decoding call can take one more token; whether any call had to go."""
    preempted = False
    while growth_blocks(world, i, 1) > available(world.instances[i]):
        preempt_youngest(world, i)
        preempted = True
    return preempted


@compiled
def give_chunk(world: World, c: int, budget: int) -> int:
    """Prefill tokens that call `c` gets of `budget`."""
    call = world.calls[c]
    call["chunk"] = max(0, min(budget, call["target"] - call["kv"]))
    return call["chunk"]


@compiled
def share_budget(world: World, i: int) -> int:
    """Give the token budget to the running calls, decoding ones first; what is left of it."""
    instance = world.instances[i]
    budget = instance["max_num_batched_tokens"]
    for r in range(instance["n_running"]):
        budget -= 1 if world.calls[world.running[i, r]]["state"] == DECODE else 0
    for r in range(instance["n_running"]):
        c = world.running[i, r]
        if world.calls[c]["state"] == PREFILL:
            budget -= give_chunk(world, c, budget)
    return budget


@compiled_apart
def fetch(world: World, i: int, c: int) -> None:
    """Prefiller `i` fetches the history of call `c` from where its conversation is pinned, as far as it is there."""
    call, home = world.calls[c], pinned_to(world, c)
    tokens = 0 if home < 0 else min(call["moving"], reach_of(world, home, c))
    call["moving"] = tokens
    if tokens <= call["kv"]:
        return
    origin = world.instances[home]
    call["kv"] = tokens
    origin["sent"] += 1
    origin["sent_tokens"] += tokens
    world.pins[pin_row(world, c)]["sent"] += 1
    hold_up(world, i, transfer_ms(world.costs, origin, tokens))


@compiled
def admit(world: World, i: int, c: int, e: int, blocks: int) -> None:
    """Move waiting call `c` into the batch of instance `i`, reusing `blocks` blocks of cached entry `e`."""
    instance, call = world.instances[i], world.calls[c]
    remove(world, i, c)
    begin_running(world, c)
    vtc_charge(world.counters[i], call["workflow"], call["input_tokens"], 0)
    admit_kv(world, i, c, e, blocks)
    call["state"] = PREFILL
    if call["handoff"] == 1 and call["moving"] > call["kv"]:
        fetch(world, i, c)
    if call["stream_key"] >= 0 and call["history_tokens"] > 0 and call["emitted"] + call["preemptions"] == 0:
        size = instance["block_size"]
        lost = (min(call["history_tokens"], call["target"]) - 1) // size - call["kv"] // size
        if lost > 0:
            note_recompute(world, i, c, lost * size)
    call["cached_tokens"] += call["kv"]
    instance["cached_tokens"] += call["kv"]
    if call["started_s"] < 0.0:
        call["started_s"] = world.clock[0]["now_s"]
    world.running[i, instance["n_running"]] = c
    instance["n_running"] += 1


@compiled
def pick_next(world: World, i: int) -> int:
    """The waiting call that instance `i` admits next by the policy in force."""
    head, now_s = world.instances[i]["wait_head"], world.clock[0]["now_s"]
    return pick_waiting(world.policy[0], world.workflows, world.counters[i], world.calls, head, now_s)


@compiled
def admit_waiting(world: World, i: int, budget: int) -> None:
    """Admit waiting calls in queue order while seats, token budget and KV blocks last."""
    instance = world.instances[i]
    growth = growth_blocks(world, i, 1) if instance["n_waiting"] > 0 else 0
    while instance["n_waiting"] > 0 and instance["n_running"] < instance["max_num_seqs"] and budget > 0:
        c = pick_next(world, i)
        world.calls[c]["target"] = world.calls[c]["input_tokens"] + world.calls[c]["emitted"]
        e, blocks = find_hit(world, i, c)
        if not can_admit(world, i, c, e, blocks, growth):
            e, blocks = other_hit(world, i, c)
        if not can_admit(world, i, c, e, blocks, growth):
            if instance["n_running"] > 0:
                break
            e, blocks = -1, 0
        admit(world, i, c, e, blocks)
        budget -= give_chunk(world, c, budget)


@compiled
def longest_run(world: World, i: int, n: int) -> int:
    """Decode iterations, at most `n`, for which KV blocks suffice without a preemption."""
    instance = world.instances[i]
    most_a_call = n // instance["block_size"] + 1
    if available(instance) >= instance["n_running"] * most_a_call:
        return n
    low, high = 1, n
    while low < high:
        middle = (low + high + 1) // 2
        if growth_blocks(world, i, middle) <= available(instance):
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def start_decode(world: World, i: int, b: int, k: int, n: int) -> float:
    """Begin a run of `n` decode iterations, fewer where blocks do not last; its duration, ms."""
    instance = world.instances[i]
    n = longest_run(world, i, n)
    instance["run"] = DECODING
    instance["run_n"] = n
    instance["run_tokens"] = b
    instance["run_w"] = run_w(world.costs, instance["profile"], b, 0)
    return decode_run_ms(world.costs, instance["profile"], instance["host_ms"], b, k, n)


@compiled
def start_mixed(world: World, i: int, b: int, k: int, p: int, kvp: float, area: float) -> float:
    """Begin one iteration that holds prefill tokens; its duration, ms."""
    instance = world.instances[i]
    instance["run"] = MIXED
    instance["run_n"] = 1
    instance["run_tokens"] = p + b
    instance["run_w"] = run_w(world.costs, instance["profile"], b, p)
    return mixed_ms(world.costs, instance["profile"], instance["host_ms"], b, k, p, kvp, area)


@compiled
def batch_of(world: World, i: int) -> tuple[int, int, int, int, float, float]:
    """Composition of the next iteration: B, K, fewest tokens left of a decoding call, P, kvp, area."""
    b, k, left, p, kvp, area = 0, 0, 1 << 60, 0, 0.0, 0.0
    for r in range(world.instances[i]["n_running"]):
        call = world.calls[world.running[i, r]]
        if call["state"] == DECODE:
            b += 1
            k += call["kv"]
            left = min(left, call["limit"] - call["emitted"])
        elif call["chunk"] > 0:
            p += call["chunk"]
            kvp += call["kv"]
            area += chunk_area(call["kv"], call["chunk"])
    return b, k, left, p, kvp, area


@compiled
def book_idle(world: World, i: int, until_s: float) -> None:
    """Book the idle draw of instance `i` up to `until_s`."""
    instance = world.instances[i]
    joules = world.costs.profiles[instance["profile"]]["idle_w"] * (until_s - instance["accounted_s"])
    instance["energy_j"] += joules
    instance["idle_j"] += joules
    instance["idle_after_j"] += joules
    instance["accounted_s"] = until_s


@compiled
def first_iteration_s(instance: Record) -> float:
    """When the first iteration of the run under way begins, s."""
    return instance["run_start_s"] + instance["run_lead_s"]


@compiled
def start_run(world: World, i: int, single: bool) -> None:
    """Begin the next run with the calls in the batch, of one iteration if `single`, or fall idle.

    An instance that is held up by handing over KV begins its first iteration when that is done.
    """
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    if instance["n_running"] == 0:
        instance["run"] = IDLE
        unschedule(world.runs, i)
        return
    b, k, left, p, kvp, area = batch_of(world, i)
    if p > 0:
        ms = start_mixed(world, i, b, k, p, kvp, area)
    else:
        ms = start_decode(world, i, b, k, 1 if single else left)
    instance["run_start_s"] = now_s
    instance["run_lead_s"] = max(0.0, instance["ready_s"] - now_s)
    instance["run_b"] = b
    instance["run_kv"] = k
    schedule(world.runs, i, first_iteration_s(instance) + ms * 1e-3)


@compiled
def plan(world: World, i: int) -> None:
    """Make up the batch of instance `i` at a batch boundary and begin its run."""
    if world.instances[i]["accounted_s"] < world.clock[0]["now_s"]:
        book_idle(world, i, world.clock[0]["now_s"])
    preempted = make_room(world, i)
    budget = share_budget(world, i)
    if not preempted or world.instances[i]["n_running"] == 0:
        admit_waiting(world, i, budget)
    look_again = preempted or (world.instances[i]["n_waiting"] > 0 and order_moves(world.policy[0]))
    start_run(world, i, look_again or world.clock[0]["exact"] == 1)  # who was not let in is looked at next time


@compiled
def run_s(world: World, instance: Record, n: int) -> float:
    """Time that the first `n` iterations of the decode run under way take, s."""
    ms = decode_run_ms(world.costs, instance["profile"], instance["host_ms"], instance["run_b"], instance["run_kv"], n)
    return ms * 1e-3


@compiled
def iterations_by(world: World, i: int, time_s: float) -> int:
    """Iterations of the decode run under way that have ended by `time_s`, at most all of them."""
    instance = world.instances[i]
    low, high = 0, instance["run_n"]
    while low < high:
        middle = (low + high + 1) // 2
        if first_iteration_s(instance) + run_s(world, instance, middle) <= time_s:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def cut_run(world: World, i: int, time_s: float) -> None:
    """End a fast-forwarded run at the first batch boundary at or after `time_s`: something new is waiting."""
    instance = world.instances[i]
    if instance["run"] != DECODING or instance["run_n"] == 1:
        return
    n = iterations_by(world, i, time_s)
    if n < instance["run_n"] and (n == 0 or first_iteration_s(instance) + run_s(world, instance, n) < time_s):
        n += 1
    if n < instance["run_n"]:
        instance["run_n"] = n
        schedule(world.runs, i, first_iteration_s(instance) + run_s(world, instance, n))
