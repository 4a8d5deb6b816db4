"""KV blocks of an instance: admission against the watermark, growth, reuse of cached prefixes, release.

At every moment free + evictable + blocks owned by running calls + blocks of shared prefixes in use = all blocks.
"""

from control.jit import compiled, compiled_apart
from control.policy.placement import blocks_for, reuses_context
from control.policy.tables import Record
from control.twin.prefixes import (
    drop_prefix,
    evict,
    forget_prefix,
    hold,
    let_go,
    lru_append,
    lru_remove,
    new_prefix,
    reachable_blocks,
)
from control.twin.world import World


@compiled
def available(instance: Record) -> int:
    """Blocks that can be had: free ones and cached prefixes nobody uses."""
    return instance["free"] + instance["evictable"]


@compiled
def allocate(world: World, i: int, n: int) -> None:
    """Take `n` available blocks, evicting cached prefixes where free ones do not suffice."""
    instance = world.instances[i]
    if instance["free"] < n:
        evict(world, i, n - instance["free"])
    instance["free"] -= n
    used = instance["blocks"] - available(instance)
    if used > instance["kv_peak"]:
        instance["kv_peak"] = used


@compiled
def may_reuse(world: World, i: int) -> bool:
    """Whether a call may use what other calls left cached on instance `i`."""
    return world.instances[i]["caching"] == 1 and reuses_context(world.policy[0])


@compiled
def reach_of(world: World, i: int, c: int) -> int:
    """Leading tokens of call `c`'s context that its stream's last call left cached on instance `i`."""
    call = world.calls[c]
    if call["stream_key"] < 0 or world.slots[i, call["stream_key"]] < 0:
        return 0
    blocks = reachable_blocks(world, i, world.slots[i, call["stream_key"]])
    return min(blocks * world.instances[i]["block_size"], call["history_tokens"])


@compiled
def own_hit(world: World, i: int, c: int) -> tuple[int, int]:
    """Entry and leading blocks that the call's own remnant or stream gives: (-1, 0) for none."""
    call, size = world.calls[c], world.instances[i]["block_size"]
    e, most = call["remnant"], call["target"]
    if e < 0 and call["stream_key"] >= 0 and may_reuse(world, i):
        e, most = world.slots[i, call["stream_key"]], call["history_tokens"]
    if e < 0:
        return -1, 0
    return e, min(reachable_blocks(world, i, e), most // size, (call["target"] - 1) // size)


@compiled
def shared_hit(world: World, i: int, c: int) -> tuple[int, int]:
    """Entry and leading blocks that the call's shared prefix gives: (-1, 0) for none."""
    call, size = world.calls[c], world.instances[i]["block_size"]
    if call["shared_key"] < 0 or not may_reuse(world, i):
        return -1, 0
    e = world.slots[i, call["shared_key"]]
    if e < 0:
        return -1, 0
    return e, min(world.prefixes[e]["blocks"], call["shared_tokens"] // size, (call["target"] - 1) // size)


@compiled
def find_hit(world: World, i: int, c: int) -> tuple[int, int]:
    """The cached prefix that spares call `c` most: entry and blocks; at least one token is always computed."""
    e, blocks = own_hit(world, i, c)
    shared, shared_blocks = shared_hit(world, i, c)
    if shared_blocks > blocks:
        e, blocks = shared, shared_blocks
    return (e, blocks) if blocks > 0 else (-1, 0)


@compiled
def other_hit(world: World, i: int, c: int) -> tuple[int, int]:
    """The call's shared prefix, to fall back on where the larger hit leaves too few blocks.

    What running calls use of it costs nothing, while blocks of the call's own must be kept from eviction first.
    """
    e, blocks = shared_hit(world, i, c)
    return (e, blocks) if blocks > 0 else (-1, 0)


@compiled
def is_shared(world: World, e: int) -> bool:
    """Whether entry `e` is a prefix shared between workflows."""
    key = world.prefixes[e]["key"]
    return 0 <= key < world.clock[0]["n_shared"]


@compiled
def pinned_by(world: World, i: int, e: int, blocks: int) -> int:
    """Evictable blocks that stop being so when a call takes `blocks` blocks of entry `e`."""
    if e < 0:
        return 0
    entry = world.prefixes[e]
    if is_shared(world, e):
        return entry["blocks"] if entry["refs"] == 0 else 0
    pinned = max(0, blocks - entry["base"])
    if entry["base"] > 0:
        parent = world.prefixes[world.slots[i, entry["parent"]]]
        pinned += parent["blocks"] if parent["refs"] == 0 else 0
    return pinned


@compiled
def can_admit(world: World, i: int, c: int, e: int, blocks: int, growth: int) -> bool:
    """Whether the whole context of call `c` fits, leaving the watermark unless nothing else runs.

    `growth` blocks are spoken for: the decoding calls take them in the very next iteration.
    """
    instance = world.instances[i]
    need = blocks_for(world.calls[c]["target"], instance["block_size"]) - blocks
    rest = available(instance) - growth - pinned_by(world, i, e, blocks) - need
    return rest >= (instance["watermark"] if instance["n_running"] > 0 else 0)


@compiled
def take_shared(world: World, i: int, c: int, e: int, blocks: int) -> None:
    """Borrow the leading `blocks` blocks of shared entry `e`."""
    if blocks > 0:
        hold(world, i, e)
        world.calls[c]["base"] = blocks
        world.calls[c]["base_key"] = world.prefixes[e]["key"]


@compiled
def take_own(world: World, i: int, c: int, e: int, blocks: int) -> None:
    """Turn the leading `blocks` blocks of a stream's or remnant's entry into blocks of the call; free the rest."""
    entry, call = world.prefixes[e], world.calls[c]
    base, parent = min(blocks, entry["base"]), entry["parent"]
    lru_remove(world, i, e)
    call["own"] = blocks - base
    world.instances[i]["free"] += entry["blocks"] - call["own"]
    forget_prefix(world, e)
    if base > 0:
        take_shared(world, i, c, world.slots[i, parent], base)


@compiled
def admit_kv(world: World, i: int, c: int, e: int, blocks: int) -> None:
    """Give call `c` all blocks of its context, `blocks` of them from entry `e`."""
    call, size = world.calls[c], world.instances[i]["block_size"]
    call["base"], call["own"], call["base_key"] = 0, 0, -1
    if e >= 0 and is_shared(world, e):
        take_shared(world, i, c, e, blocks)
    elif e >= 0:
        take_own(world, i, c, e, blocks)
    if call["remnant"] >= 0:
        drop_prefix(world, i, call["remnant"])
    need = blocks_for(call["target"], size) - blocks
    allocate(world, i, need)
    call["own"] += need
    call["kv"] = blocks * size


@compiled
def grow_kv(world: World, i: int, c: int) -> None:
    """Bring the blocks of call `c` up to its KV tokens."""
    call = world.calls[c]
    need = blocks_for(call["kv"], world.instances[i]["block_size"]) - call["base"] - call["own"]
    if need > 0:
        allocate(world, i, need)
        call["own"] += need


@compiled
def publish_shared(world: World, i: int, c: int) -> None:
    """After prefill, leave the call's static prefix for others: its blocks move to the shared entry, in use."""
    call, instance = world.calls[c], world.instances[i]
    key, want = call["shared_key"], call["shared_tokens"] // instance["block_size"]
    if instance["caching"] == 0 or key < 0 or want <= call["base"]:
        return
    e = world.slots[i, key]
    if e < 0 and call["base"] == 0:
        e = new_prefix(world, i, key, -1, want)
        world.prefixes[e]["refs"] = 1
    elif e >= 0 and call["base_key"] == key and world.prefixes[e]["blocks"] == call["base"]:
        world.prefixes[e]["blocks"] = want
    else:
        return
    call["own"] -= want - call["base"]
    call["base"] = want
    call["base_key"] = key


@compiled
def give_back_blocks(world: World, i: int, c: int, key: int, owner: int) -> None:
    """Leave the call's full blocks cached under `key` or as the remnant of call `owner`; free the others."""
    call, instance = world.calls[c], world.instances[i]
    kept = call["kv"] // instance["block_size"] - call["base"]
    if kept > 0 and (key >= 0 or owner >= 0):
        e = new_prefix(world, i, key, owner, kept)
        world.prefixes[e]["base"] = call["base"]
        world.prefixes[e]["parent"] = call["base_key"]
        lru_append(world, i, e)
        instance["free"] += call["own"] - kept
    else:
        instance["free"] += call["own"]
    if call["base"] > 0:
        let_go(world, i, world.slots[i, call["base_key"]])
    call["own"], call["base"], call["base_key"] = 0, 0, -1


@compiled
def release_kv(world: World, i: int, c: int) -> None:
    """A call ended: its context stays cached for its stream's next call as long as blocks last."""
    key = world.calls[c]["stream_key"] if may_reuse(world, i) else -1
    if key >= 0 and world.slots[i, key] >= 0:
        drop_prefix(world, i, world.slots[i, key])
    give_back_blocks(world, i, c, key, -1)


@compiled
def preempt_kv(world: World, i: int, c: int) -> None:
    """A call is preempted: what it computed stays cached as its remnant as long as blocks last."""
    give_back_blocks(world, i, c, -1, c if world.instances[i]["caching"] == 1 else -1)


@compiled_apart
def install_kv(world: World, i: int, c: int) -> None:
    """KV of call `c` arrived on instance `i`: its full blocks stand cached as the call's remnant, as far as they fit.

    What did not move because its stream had it here is part of them, unless it was evicted meanwhile.
    """
    call, instance = world.calls[c], world.instances[i]
    size, key = instance["block_size"], call["stream_key"]
    want = call["moving"] // size
    if call["behind"] > 0:
        here = reach_of(world, i, c)
        want = want if here >= call["behind"] else here // size
    if key >= 0 and world.slots[i, key] >= 0:
        drop_prefix(world, i, world.slots[i, key])
    blocks = min(want, available(instance))
    if blocks > 0:
        if instance["free"] < blocks:
            evict(world, i, blocks - instance["free"])
        instance["free"] -= blocks
        lru_append(world, i, new_prefix(world, i, -1, c, blocks))


@compiled
def clear_kv(world: World, i: int) -> None:
    """An instance lost its memory: every cached prefix is gone. No call may run there."""
    while world.instances[i]["lru_head"] >= 0:
        drop_prefix(world, i, world.instances[i]["lru_head"])
