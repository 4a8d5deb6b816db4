"""Instances that are real servers: the twin queues calls for them and keeps their books, their answers move them.

A remote instance never has a run of its own. Its waiting calls are sent as seats of its window and KV blocks allow, in
the order of the policy in force; its KV blocks, pins and queue are accounted for as on a simulated one.
"""

from control.jit import compiled, compiled_apart, compiled_within
from control.policy.codes import COMPLETED, DECODE, DISPATCHED, DOWN, IN_DECODE, PREFILL
from control.policy.power import run_w
from control.policy.vtc import vtc_charge
from control.twin.batching import admit, give_chunk, pick_next
from control.twin.finish import emit, leave_prefiller, step_prefill, unload
from control.twin.journal import note
from control.twin.kv import available, can_admit, find_hit, give_back_blocks, grow_kv, other_hit, release_kv
from control.twin.phases import advance_meters, end_phase
from control.twin.world import World


@compiled
def remote_w(world: World, i: int) -> float:
    """What remote instance `i` draws, W: as measured, else as its profile says of the calls it has."""
    instance = world.instances[i]
    if instance["measured_w"] >= 0.0:
        return instance["measured_w"]
    if instance["state"] == DOWN and instance["n_running"] == 0:
        return 0.0
    if instance["n_running"] == 0:
        return world.costs.profiles[instance["profile"]]["idle_w"]
    prefilling = 0
    for r in range(instance["n_running"]):
        if world.calls[world.running[i, r]]["state"] == PREFILL:
            prefilling += 1
    return run_w(world.costs, instance["profile"], instance["n_running"] - prefilling, prefilling)


@compiled_apart
def meter_remote(world: World, i: int) -> None:
    """Book the draw of remote instance `i` up to now; the calls it has share it alike."""
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    seconds, n = now_s - instance["accounted_s"], instance["n_running"]
    if seconds <= 0.0:
        return
    joules = remote_w(world, i) * seconds
    instance["energy_j"] += joules
    instance["accounted_s"] = now_s
    if n == 0:
        instance["idle_j"] += joules
        instance["idle_after_j"] += joules
        return
    instance["busy_s"] += seconds
    instance["last_busy_s"] = now_s
    instance["idle_after_j"] = 0.0
    advance_meters(world, i, seconds)
    for r in range(n):
        call = world.calls[world.running[i, r]]
        call["energy_j"] += joules / n
        if call["state"] == PREFILL:
            call["prefill_j"] += joules / n
            instance["prefill_j"] += joules / n


@compiled_apart
def meter_all_remote(world: World) -> None:
    """Book the draw of every remote instance up to now."""
    for i in range(len(world.instances)):
        if world.instances[i]["remote"] == 1:
            meter_remote(world, i)


@compiled_apart
def send_waiting(world: World, i: int) -> None:
    """Send waiting calls to remote instance `i` as far as its window and its KV blocks allow."""
    meter_remote(world, i)
    instance = world.instances[i]
    while instance["n_waiting"] > 0 and instance["n_running"] < instance["max_num_seqs"]:
        c = pick_next(world, i)
        call = world.calls[c]
        call["target"] = call["input_tokens"] + call["emitted"]
        e, blocks = find_hit(world, i, c)
        if not can_admit(world, i, c, e, blocks, 0):
            e, blocks = other_hit(world, i, c)
        if not can_admit(world, i, c, e, blocks, 0):
            if instance["n_running"] > 0:
                return
            e, blocks = -1, 0
        admit(world, i, c, e, blocks)
        give_chunk(world, c, call["target"])
        note(world, DISPATCHED, c, i)


@compiled
def unseat(world: World, i: int, c: int) -> None:
    """Take call `c` out of those that remote instance `i` has."""
    instance, kept = world.instances[i], 0
    for r in range(instance["n_running"]):
        if world.running[i, r] != c:
            world.running[i, kept] = world.running[i, r]
            kept += 1
    instance["n_running"] = kept


@compiled
def grow_to(world: World, i: int, c: int, tokens: int) -> None:
    """Call `c` has generated `tokens` tokens by now; its KV grows as far as there are blocks by our books."""
    call, instance = world.calls[c], world.instances[i]
    n = tokens - call["emitted"]
    if n <= 0:
        return
    room = (call["base"] + call["own"] + available(instance)) * instance["block_size"] - call["kv"]
    call["kv"] += max(0, min(n, room))
    grow_kv(world, i, c)
    emit(call, n, world.clock[0]["now_s"])
    instance["decode_tokens"] += n
    vtc_charge(world.counters[i], call["workflow"], 0, n)


@compiled
def begin_answer(world: World, c: int, ago_us: int) -> None:
    """The first token of call `c` came `ago_us` ago, us; negative: just now."""
    call = world.calls[c]
    if call["state"] != PREFILL:
        return
    step_prefill(world, call["instance"], c, 0.0)
    ago_s = max(0.0, min(ago_us * 1e-6, call["prefill_s"]))
    call["first_token_s"] -= ago_s
    call["prefill_s"] -= ago_s
    call["phase_s"] -= ago_s


@compiled_within
def shrink_to(world: World, i: int, c: int, tokens: int) -> None:
    """Call `c` has generated only `tokens` tokens, fewer than its stream had events; its KV is given up as it is."""
    call = world.calls[c]
    excess = call["emitted"] - max(1, tokens)
    if excess <= 0:
        return
    call["emitted"] -= excess
    world.instances[i]["decode_tokens"] -= excess
    vtc_charge(world.counters[i], call["workflow"], 0, -excess)


@compiled_within
def correct_lengths(world: World, i: int, c: int, input_tokens: int, cached_tokens: int) -> None:
    """Put the lengths that the server reports in place of those that were estimated; negative: not reported."""
    call, instance = world.calls[c], world.instances[i]
    if input_tokens > 0:
        instance["prefill_tokens"] += input_tokens - call["input_tokens"]
        call["input_tokens"] = input_tokens
    if cached_tokens >= 0 and call["source"] < 0:  # KV that came from a prefiller is in no server's count
        instance["prefill_tokens"] -= cached_tokens - call["cached_tokens"]
        instance["cached_tokens"] += cached_tokens - call["cached_tokens"]
        call["cached_tokens"] = cached_tokens


@compiled_within
def leave_server(world: World, i: int, c: int, state: int, cause: int) -> None:
    """Call `c` has nothing more to do on remote instance `i`; what it left in the cache there stays if it completed."""
    call = world.calls[c]
    unseat(world, i, c)
    call["state"], call["cause"] = state, cause
    end_phase(world, c, IN_DECODE)
    if state == COMPLETED:
        release_kv(world, i, c)
        world.instances[i]["finished"] += 1
    else:
        give_back_blocks(world, i, c, -1, -1)
    unload(world.instances[i], call)


@compiled_within
def leave_remote_prefiller(world: World, i: int, c: int) -> None:
    """The prefill leg of call `c` on remote instance `i` has been answered: its KV waits there for a decoder."""
    call = world.calls[c]
    unseat(world, i, c)
    call["kv"] = call["target"]
    call["chunk"] = 0
    call["state"] = DECODE
    world.instances[i]["prefill_tokens"] += call["target"]
    world.instances[i]["finished"] += 1
    leave_prefiller(world, i, c)


@compiled_within
def lose_remote(world: World, i: int, c: int) -> None:
    """Remote instance `i` failed call `c`: its seat and its blocks there are free."""
    unseat(world, i, c)
    give_back_blocks(world, i, c, -1, -1)
