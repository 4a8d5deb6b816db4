"""The end of a run: tokens and joules to the calls, blocks to the cache, calls that are done to their workflows."""

from control.jit import compiled, compiled_apart
from control.policy.codes import BY_CLIENT, CANCELLED, COMPLETED, DECODE, DECODING, IN_DECODE, PREFILL
from control.policy.placement import hands_over
from control.policy.tables import Record
from control.policy.vtc import vtc_charge
from control.twin.kv import give_back_blocks, grow_kv, publish_shared, release_kv
from control.twin.phases import advance_meters, end_phase
from control.twin.world import World


@compiled
def book_run(world: World, i: int) -> float:
    """Book time and energy of the run that ends or is broken off now; the joules of its iterations.

    Before its first iteration the instance draws its idle power.
    """
    instance, now_s = world.instances[i], world.clock[0]["now_s"]
    seconds = now_s - instance["run_start_s"]
    lead_s = min(instance["run_lead_s"], seconds)
    joules = instance["run_w"] * (seconds - lead_s)
    lead_j = world.costs.profiles[instance["profile"]]["idle_w"] * lead_s
    advance_meters(world, i, seconds)
    instance["energy_j"] += joules + lead_j
    instance["idle_j"] += lead_j
    instance["busy_s"] += seconds - lead_s
    instance["accounted_s"] = now_s
    instance["last_busy_s"] = now_s
    instance["idle_after_j"] = 0.0
    return joules


@compiled
def emit(call: Record, n: int, now_s: float) -> None:
    """Call generated `n` tokens, the last of them now."""
    if call["emitted"] == 0:
        call["first_token_s"] = now_s
    call["emitted"] += n


@compiled
def step_decode(world: World, i: int, c: int, n: int, joules: float) -> None:
    """Decoding call `c` went through `n` iterations and drew `joules`."""
    call = world.calls[c]
    call["kv"] += n
    call["energy_j"] += joules
    grow_kv(world, i, c)
    emit(call, n, world.clock[0]["now_s"])
    world.instances[i]["decode_tokens"] += n
    vtc_charge(world.counters[i], call["workflow"], 0, n)


@compiled
def step_prefill(world: World, i: int, c: int, joules: float) -> None:
    """Prefilling call `c` computed its chunk; the last chunk yields a token."""
    call = world.calls[c]
    call["kv"] += call["chunk"]
    call["energy_j"] += joules
    call["prefill_j"] += joules
    world.instances[i]["prefill_j"] += joules
    world.instances[i]["prefill_tokens"] += call["chunk"]
    call["chunk"] = 0
    if call["kv"] == call["target"]:
        call["state"] = DECODE
        end_phase(world, c, IN_DECODE)
        publish_shared(world, i, c)
        emit(call, 1, world.clock[0]["now_s"])


@compiled
def step_calls(world: World, i: int, joules: float) -> None:
    """Move every call of the run on; the joules of an iteration are shared by tokens processed."""
    instance = world.instances[i]
    n = instance["run_n"] if instance["run"] == DECODING else 1
    a_token = joules / instance["run_tokens"]
    for r in range(instance["n_running"]):
        c = world.running[i, r]
        if world.calls[c]["state"] == DECODE:
            step_decode(world, i, c, n, a_token)
        elif world.calls[c]["state"] == PREFILL and world.calls[c]["chunk"] > 0:
            step_prefill(world, i, c, a_token * world.calls[c]["chunk"])


@compiled
def leave(world: World, i: int, c: int) -> None:
    """A call that completed, or that its client gave up, leaves its instance."""
    instance, call = world.instances[i], world.calls[c]
    call["state"] = CANCELLED if call["cause"] == BY_CLIENT else COMPLETED
    end_phase(world, c, IN_DECODE)
    release_kv(world, i, c)
    instance["finished"] += 1 if call["state"] == COMPLETED else 0
    unload(instance, call)


@compiled
def unload(instance: Record, call: Record) -> None:
    """Take a call's estimate off the instance's queued work, which is exactly 0 when nothing is left."""
    instance["queued_work_s"] -= call["t_comp_s"]
    if instance["n_waiting"] + instance["n_running"] == 0:
        instance["queued_work_s"] = 0.0


@compiled
def goes_on_elsewhere(world: World, c: int) -> bool:
    """Whether call `c` has prefilled where it was only to prefill."""
    call = world.calls[c]
    return call["handoff"] == 1 and call["state"] == DECODE and hands_over(world.policy[0])


@compiled_apart
def leave_prefiller(world: World, i: int, c: int) -> None:
    """Call `c` leaves the prefiller; its blocks are free at once, its KV waits in the host's memory."""
    give_back_blocks(world, i, c, -1, -1)
    unload(world.instances[i], world.calls[c])


@compiled
def collect_ended(world: World, i: int) -> int:
    """Close up the batch over calls that are done here: those that ended, their number returned, rows in `world.ended`.

    Calls that decode elsewhere are counted in the clock's n_handed, rows in `world.ended` from its end.
    """
    instance, clock, kept, ended = world.instances[i], world.clock[0], 0, 0
    clock["n_handed"] = 0
    for r in range(instance["n_running"]):
        c = world.running[i, r]
        if world.calls[c]["emitted"] >= world.calls[c]["limit"] or world.calls[c]["cause"] == BY_CLIENT:
            world.ended[ended] = c
            ended += 1
        elif goes_on_elsewhere(world, c):
            clock["n_handed"] += 1
            world.ended[len(world.ended) - clock["n_handed"]] = c
        else:
            world.running[i, kept] = c
            kept += 1
    instance["n_running"] = kept
    for k in range(ended):
        leave(world, i, world.ended[k])
    for k in range(clock["n_handed"]):
        leave_prefiller(world, i, world.ended[len(world.ended) - 1 - k])
    return ended


@compiled
def finish_run(world: World, i: int) -> int:
    """End the run of instance `i` now; the number of calls that completed, rows in `world.ended`."""
    world.instances[i]["iterations"] += world.instances[i]["run_n"]
    step_calls(world, i, book_run(world, i))
    return collect_ended(world, i)
