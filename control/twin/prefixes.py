"""Cached prefixes of an instance: a pool of entries, found by key, evicted least recently used first.

An entry owns KV blocks. It is a *shared* prefix (static prompt of a step), a *stream's* context after its last
call, or the *remnant* of a preempted call. Entries that no running call uses are evictable and stand in the
instance's LRU list; eviction takes an entry's blocks from its tail, so what is left is still a prefix. A stream or a
remnant may build on a shared prefix: then it owns only the blocks behind `base`.
"""

from control.jit import compiled, compiled_apart
from control.twin.world import World


@compiled
def lru_append(world: World, i: int, e: int) -> None:
    """Make entry `e` evictable, the most recently used one."""
    instance, entry = world.instances[i], world.prefixes[e]
    entry["prev"] = instance["lru_tail"]
    entry["next"] = -1
    if instance["lru_tail"] >= 0:
        world.prefixes[instance["lru_tail"]]["next"] = e
    else:
        instance["lru_head"] = e
    instance["lru_tail"] = e
    instance["evictable"] += entry["blocks"]


@compiled
def lru_remove(world: World, i: int, e: int) -> None:
    """Take entry `e` out of the evictable ones."""
    instance, entry = world.instances[i], world.prefixes[e]
    if entry["prev"] >= 0:
        world.prefixes[entry["prev"]]["next"] = entry["next"]
    else:
        instance["lru_head"] = entry["next"]
    if entry["next"] >= 0:
        world.prefixes[entry["next"]]["prev"] = entry["prev"]
    else:
        instance["lru_tail"] = entry["prev"]
    instance["evictable"] -= entry["blocks"]


@compiled
def new_prefix(world: World, i: int, key: int, call: int, blocks: int) -> int:
    """A fresh entry of `blocks` owned blocks, found by `key` or by its preempted `call`; not yet in the LRU list."""
    clock = world.clock[0]
    clock["n_free_prefixes"] -= 1
    e = world.free_prefixes[clock["n_free_prefixes"]]
    entry = world.prefixes[e]
    entry["instance"] = i
    entry["key"] = key
    entry["call"] = call
    entry["blocks"] = blocks
    entry["base"] = 0
    entry["parent"] = -1
    entry["refs"] = 0
    if key >= 0:
        world.slots[i, key] = e
    else:
        world.calls[call]["remnant"] = e
    return e


@compiled
def forget_prefix(world: World, e: int) -> None:
    """Return an entry, which owns nothing any more and stands in no list, to the pool."""
    entry, clock = world.prefixes[e], world.clock[0]
    if entry["key"] >= 0:
        world.slots[entry["instance"], entry["key"]] = -1
    else:
        world.calls[entry["call"]]["remnant"] = -1
    world.free_prefixes[clock["n_free_prefixes"]] = e
    clock["n_free_prefixes"] += 1


@compiled
def drop_prefix(world: World, i: int, e: int) -> None:
    """Free an evictable entry with all its blocks."""
    lru_remove(world, i, e)
    world.instances[i]["free"] += world.prefixes[e]["blocks"]
    forget_prefix(world, e)


@compiled_apart
def evict(world: World, i: int, n: int) -> None:
    """Free `n` blocks of evictable entries, least recently used first, each from its tail."""
    instance = world.instances[i]
    instance["evicted_blocks"] += n
    while n > 0:
        e = instance["lru_head"]
        entry = world.prefixes[e]
        if entry["blocks"] <= n:
            n -= entry["blocks"]
            drop_prefix(world, i, e)
        else:
            entry["blocks"] -= n
            instance["evictable"] -= n
            instance["free"] += n
            n = 0


@compiled
def hold(world: World, i: int, e: int) -> None:
    """A running call begins to use entry `e`."""
    if world.prefixes[e]["refs"] == 0:
        lru_remove(world, i, e)
    world.prefixes[e]["refs"] += 1


@compiled
def let_go(world: World, i: int, e: int) -> None:
    """A running call ends its use of entry `e`."""
    world.prefixes[e]["refs"] -= 1
    if world.prefixes[e]["refs"] == 0:
        lru_append(world, i, e)


@compiled
def reachable_blocks(world: World, i: int, e: int) -> int:
    """Leading blocks of context that entry `e` gives: none where the shared prefix it builds on is gone."""
    entry = world.prefixes[e]
    if entry["base"] == 0:
        return entry["blocks"]
    parent = world.slots[i, entry["parent"]]
    if parent < 0 or world.prefixes[parent]["blocks"] < entry["base"]:
        return 0
    return entry["base"] + entry["blocks"]
