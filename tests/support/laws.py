"""The laws every world obeys, at its end and at any moment between two steps."""

import numpy as np

from control.metrics.ledger import debts_s
from control.policy.codes import (
    BROKEN,
    BY_CLIENT,
    CANCELLED,
    COMPLETED,
    DECODE,
    DONE,
    DOWN,
    HELD,
    IDLE,
    PLANNED,
    PREFILL,
    REFUSED,
    TRANSFER,
    WAITING,
)
from control.policy.tables import Table
from control.twin.world import World

ENDED = (COMPLETED, REFUSED, CANCELLED)
PHASES = ("queue_own_s", "queue_other_s", "prefill_s", "decode_s", "preempted_s", "transfer_s", "failure_s")


def check_world(world: World, ended: bool = False) -> None:
    """Assert every law; `ended`: nothing is left to happen."""
    check_calls(world, ended)
    for i in range(len(world.instances)):
        check_queue(world, i)
        check_batch(world, i)
        check_blocks(world, i)
        check_work(world, i)
    check_pool(world)
    check_pins(world)
    check_held(world)
    check_tokens(world)
    check_joules(world)
    check_causality(world)
    check_phases(world)
    check_ledger(world)


def check_calls(world: World, ended: bool) -> None:
    """Every call stands in one place, and ends exactly once."""
    calls, states = world.calls, world.calls["state"]
    assert world.clock[0]["ended_calls"] == np.isin(states, ENDED).sum()
    assert world.instances["n_waiting"].sum() == (states == WAITING).sum()
    assert world.instances["n_running"].sum() == np.isin(states, (PREFILL, DECODE)).sum()
    assert ((calls["finished_s"] >= 0) == np.isin(states, ENDED)).all()
    given_up = (calls["cause"] == BY_CLIENT) & np.isin(states, (PREFILL, DECODE))  # until the batch boundary
    assert ((calls["cause"] > 0) == np.isin(states, (REFUSED, CANCELLED)) | given_up).all()
    assert world.instances["finished"].sum() == (states == COMPLETED).sum()
    assert (world.transfers.place[: len(calls)] >= 0).sum() == (states == TRANSFER).sum()
    if ended:
        assert np.isin(states, ENDED).all()
        assert (world.workflows["finished_s"] >= 0).all()
        assert world.clock[0]["open_workflows"] == 0


def queue_of(world: World, i: int) -> list[int]:
    """Calls waiting on instance `i`, by the links."""
    queue, before, c = [], -1, int(world.instances[i]["wait_head"])
    while c >= 0:
        assert world.calls[c]["prev"] == before
        queue.append(c)
        before, c = c, int(world.calls[c]["next"])
    assert world.instances[i]["wait_tail"] == before
    return queue


def running_on(world: World, i: int) -> list[int]:
    """Calls in the batch of instance `i`."""
    return [int(c) for c in world.running[i, : world.instances[i]["n_running"]]]


def check_queue(world: World, i: int) -> None:
    """The list holds exactly the calls that wait there, and the load is the sum of the estimates."""
    instance, queue = world.instances[i], queue_of(world, i)
    assert len(queue) == instance["n_waiting"]
    here = [*queue, *running_on(world, i)]
    assert (world.calls["instance"][here] == i).all()
    assert (world.calls["state"][queue] == WAITING).all()
    load_s = world.calls["t_comp_s"][here].sum()
    assert abs(instance["queued_work_s"] - load_s) <= 1e-9 * (1.0 + load_s)
    assert here or instance["queued_work_s"] == 0.0


def check_batch(world: World, i: int) -> None:
    """Seats are kept, and a running call never holds more tokens than its blocks."""
    instance, rows = world.instances[i], running_on(world, i)
    batch = world.calls[rows]
    assert len(set(rows)) == len(rows) <= instance["max_num_seqs"]
    assert np.isin(batch["state"], (PREFILL, DECODE)).all()
    assert (batch["kv"] <= (batch["base"] + batch["own"]) * instance["block_size"]).all()
    assert (batch["kv"] <= instance["max_model_len"]).all()
    assert (batch["emitted"] < batch["limit"]).all()
    assert batch["chunk"].sum() <= instance["max_num_batched_tokens"]


def lru_of(world: World, i: int) -> list[int]:
    """Evictable entries of instance `i`, by the links."""
    entries, before, e = [], -1, int(world.instances[i]["lru_head"])
    while e >= 0:
        assert world.prefixes[e]["prev"] == before
        entries.append(e)
        before, e = e, int(world.prefixes[e]["next"])
    assert world.instances[i]["lru_tail"] == before
    return entries


def live_entries(world: World) -> list[int]:
    """Rows of the prefix pool in use."""
    n_free = world.clock[0]["n_free_prefixes"]
    free = {int(e) for e in world.free_prefixes[:n_free]}
    assert len(free) == n_free
    return [e for e in range(len(world.prefixes)) if e not in free]


def check_blocks(world: World, i: int) -> None:
    """free + evictable + own of running calls + shared prefixes in use = all blocks."""
    instance, lru, batch = world.instances[i], lru_of(world, i), world.calls[running_on(world, i)]
    here = [e for e in live_entries(world) if world.prefixes[e]["instance"] == i]
    used = [e for e in here if world.prefixes[e]["refs"] > 0]
    assert sorted(lru) == [e for e in here if world.prefixes[e]["refs"] == 0]
    assert instance["evictable"] == world.prefixes["blocks"][lru].sum()
    assert instance["free"] >= 0
    in_use = batch["own"].sum() + world.prefixes["blocks"][used].sum()
    assert instance["free"] + instance["evictable"] + in_use == instance["blocks"]
    assert in_use <= instance["kv_peak"] <= instance["blocks"]
    for e in here:
        check_entry(world, i, world.prefixes[e], batch)


def check_entry(world: World, i: int, entry: Table, batch: Table) -> None:
    """A cached prefix owns blocks, and as many running calls use it as it counts."""
    assert entry["blocks"] > 0
    if 0 <= entry["key"] < world.clock[0]["n_shared"]:
        users = batch[batch["base_key"] == entry["key"]]
        assert entry["refs"] == len(users)
        assert (users["base"] <= entry["blocks"]).all()
    else:
        assert entry["refs"] == 0


def check_pool(world: World) -> None:
    """Every entry in use is found by exactly one key or preempted call, and nothing else is found."""
    found = [int(e) for e in world.slots.ravel() if e >= 0]
    found += [int(e) for e in world.calls["remnant"] if e >= 0]
    assert sorted(found) == live_entries(world)
    for i, key in zip(*np.nonzero(world.slots >= 0), strict=True):
        entry = world.prefixes[world.slots[i, key]]
        assert (entry["instance"], entry["key"]) == (i, key)
    for c in np.flatnonzero(world.calls["remnant"] >= 0):
        assert world.prefixes[world.calls[c]["remnant"]]["call"] == c
        assert world.calls[c]["state"] == WAITING


def check_work(world: World, i: int) -> None:
    """No instance that is not down idles while a call waits or runs there, and only then."""
    instance = world.instances[i]
    busy = instance["n_waiting"] + instance["n_running"] > 0
    assert (instance["run"] != IDLE) == busy
    assert busy == (world.runs.place[i] >= 0)
    assert not (busy and instance["state"] == DOWN)


def check_pins(world: World) -> None:
    """What is set aside on an instance is what its conversations and the calls on their way there hold."""
    for i, instance in enumerate(world.instances):
        mine = world.pins[world.pins["instance"] == i]
        alone = world.calls["reserved"][world.calls["dest"] == i]
        assert instance["pinned"] == len(mine)
        assert instance["reserved"] == mine["reserved"].sum() + alone.sum()
        assert instance["state"] != DOWN or len(mine) == 0
    assert (world.pins["reserved"][world.pins["instance"] < 0] == 0).all()
    pinned = np.bincount(world.pins["workflow"][world.pins["instance"] >= 0], minlength=len(world.workflows))
    assert (world.workflows["pins"] == pinned).all()
    assert (world.workflows["pins"][np.isin(world.workflows["state"], (DONE, BROKEN))] == 0).all()
    ended = np.isin(world.calls["state"], ENDED)
    assert (world.calls["reserved"][ended] == 0).all()


def check_held(world: World) -> None:
    """The list of held calls holds exactly those in that state, in the order in which they came to wait."""
    held, before, c = [], -1, int(world.clock[0]["held_head"])
    while c >= 0:
        assert world.calls[c]["prev"] == before
        held.append(c)
        before, c = c, int(world.calls[c]["next"])
    assert world.clock[0]["held_tail"] == before
    assert len(held) == world.clock[0]["n_held"]
    assert sorted(held) == np.flatnonzero(world.calls["state"] == HELD).tolist()
    assert (np.diff(world.calls["phase_s"][held]) >= 0).all()


def check_tokens(world: World) -> None:
    """A completed call generated its length; prompt tokens are computed or found in the cache, never both."""
    calls, instances = world.calls, world.instances
    done = calls[calls["state"] == COMPLETED]
    assert (done["emitted"] == done["limit"]).all()
    room = instances["max_model_len"][done["instance"]] - done["input_tokens"]
    assert (done["limit"] == np.minimum(done["output_tokens"], room)).all()
    assert (calls["kv"] <= calls["input_tokens"] + np.maximum(calls["emitted"], 0)).all()
    assert calls["cached_tokens"].sum() == instances["cached_tokens"].sum()
    assert calls["preemptions"].sum() == instances["preemptions"].sum()
    if instances["n_running"].sum() or calls["restarts"].sum():
        return
    computed = instances["prefill_tokens"].sum() + instances["cached_tokens"].sum()
    assert computed >= done["input_tokens"].sum()
    wasted = (calls["cause"] == BY_CLIENT) | ((calls["state"] == REFUSED) & (calls["started_s"] >= 0))
    prefilled = np.isin(calls["state"], (HELD, TRANSFER))  # elsewhere than where they will be counted
    if not calls["preemptions"].sum() + instances["sent"].sum() + wasted.sum() + prefilled.sum():
        assert computed == done["input_tokens"].sum()
        assert instances["decode_tokens"].sum() == (done["emitted"] - 1).sum()


def check_joules(world: World) -> None:
    """The calls' joules and the idle ones are all joules; an instance is busy or idle, never both."""
    booked = world.calls["energy_j"].sum() + world.instances["idle_j"].sum()
    total = world.instances["energy_j"].sum()
    assert abs(booked - total) <= 1e-6 * max(total, 1e-12)
    assert (world.instances["idle_after_j"] <= world.instances["idle_j"]).all()
    assert (world.instances["busy_s"] <= world.instances["accounted_s"] + 1e-9).all()


def check_causality(world: World) -> None:
    """arrival <= ready <= placed <= started < first token <= finished, and groups in order."""
    calls = world.calls
    arrival_s = world.workflows["arrival_s"][calls["workflow"]]
    ready = calls[calls["state"] != PLANNED]
    ready = ready[ready["ready_s"] >= 0]
    assert (calls["ready_s"][calls["ready_s"] >= 0] >= arrival_s[calls["ready_s"] >= 0]).all()
    placed = ready[ready["placed_s"] >= 0]
    assert (placed["ready_s"] <= placed["placed_s"]).all()
    started = placed[placed["started_s"] >= 0]
    straight = started[(started["restarts"] == 0) & (world.instances["sent"].sum() == 0)]
    assert (straight["placed_s"] <= straight["started_s"]).all()
    done = calls[calls["state"] == COMPLETED]
    assert (done["started_s"] < done["first_token_s"]).all()
    assert (done["first_token_s"] <= done["finished_s"]).all()
    check_groups(world)


def check_phases(world: World) -> None:
    """The phases of each call that has ended, each timed by itself, sum to the time from ready to end."""
    calls = world.calls[np.isin(world.calls["state"], (COMPLETED, REFUSED))]
    parts_s = np.stack([calls[name] for name in PHASES], axis=1)
    assert (parts_s >= -1e-9).all()
    assert np.allclose(parts_s.sum(axis=1), calls["finished_s"] - calls["ready_s"], rtol=0.0, atol=1e-6)


def check_ledger(world: World) -> None:
    """The debts of each workflow that has ended, by cause, sum to elapsed time minus plan."""
    ended = np.isin(world.workflows["state"], (DONE, BROKEN))
    rows = world.workflows[ended]
    plan_s = rows["plan_prefill_s"] + rows["plan_decode_s"] + rows["plan_tool_s"]
    debt_s = debts_s(world.workflows, world.calls)[ended].sum(axis=1)
    assert np.allclose(debt_s, rows["finished_s"] - rows["arrival_s"] - plan_s, rtol=0.0, atol=1e-6)


def check_groups(world: World) -> None:
    """A group becomes ready when the last call of the group before has ended and its tools have returned."""
    calls = world.calls
    for workflow in world.workflows:
        first = workflow["first_call"]
        mine = calls[first : first + workflow["n_calls"]]
        due_s = workflow["arrival_s"]
        for group in np.unique(mine["group"]):
            members = mine[mine["group"] == group]
            if (members["ready_s"] < 0).any():
                break
            assert (members["ready_s"] == due_s).all()
            due_s = max(due_s, (members["finished_s"] + members["tool_s"]).max())
        if workflow["finished_s"] >= 0:
            assert workflow["finished_s"] == max(workflow["arrival_s"], mine["finished_s"].max())
