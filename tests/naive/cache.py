"""KV blocks and cached prefixes of one instance, counted anew wherever they are needed."""

from tests.naive.state import Call, Instance, Prefix


def blocks_for(instance: Instance, tokens: int) -> int:
    """Blocks that hold `tokens` tokens."""
    return -(-tokens // instance.block_size)


def forget(instance: Instance, prefix: Prefix) -> None:
    """Take a prefix out of the cache; its blocks are free."""
    for table in (instance.shared, instance.streams, instance.remnants):
        for key in [key for key, value in table.items() if value is prefix]:
            del table[key]
    if prefix in instance.lru:
        instance.lru.remove(prefix)


def make_free(instance: Instance, n: int) -> None:
    """Evict until `n` blocks are free: least recently used prefix first, each from its tail."""
    instance.evicted_blocks += max(0, n - instance.free)
    while instance.free < n:
        oldest = instance.lru[0]
        oldest.blocks -= min(oldest.blocks, n - instance.free)
        if oldest.blocks == 0:
            forget(instance, oldest)


def own_prefix(instance: Instance, call: Call) -> tuple[Prefix | None, int]:
    """What the call itself, or else the call before it in its stream, left here: prefix and blocks of use."""
    prefix, most = instance.remnants.get(call.row), call.target
    if prefix is None and instance.reuses:
        prefix, most = instance.streams.get(call.stream_key), call.history_tokens
    if prefix is None:
        return None, 0
    size = instance.block_size
    return prefix, min(reach(instance, prefix), most // size, (call.target - 1) // size)


def reach(instance: Instance, prefix: Prefix) -> int:
    """Leading blocks of a context that a prefix gives: none where the shared one in front of it is gone."""
    if prefix.base > 0:
        parent = instance.shared.get(prefix.parent)
        if parent is None or parent.blocks < prefix.base:
            return 0
    return prefix.base + prefix.blocks


def standing_tokens(instance: Instance, call: Call) -> int:
    """Leading tokens of the call's context that the turn before it left here."""
    prefix = instance.streams.get(call.stream_key)
    return 0 if prefix is None else min(reach(instance, prefix) * instance.block_size, call.history_tokens)


def shared_prefix(instance: Instance, call: Call) -> tuple[Prefix | None, int]:
    """The call's static prefix, where it is cached: prefix and blocks of use."""
    prefix, size = instance.shared.get(call.shared_key), instance.block_size
    if not instance.reuses or prefix is None:
        return None, 0
    blocks = min(prefix.blocks, call.shared_tokens // size, (call.target - 1) // size)
    return (prefix, blocks) if blocks > 0 else (None, 0)


def find_hit(instance: Instance, call: Call) -> tuple[Prefix | None, int]:
    """The cached prefix that spares the call most, its own on a tie; one token is always computed."""
    own, common = own_prefix(instance, call), shared_prefix(instance, call)
    prefix, blocks = common if common[1] > own[1] else own
    return (prefix, blocks) if blocks > 0 else (None, 0)


def pinned(instance: Instance, prefix: Prefix | None, blocks: int) -> int:
    """Evictable blocks that the use of `blocks` blocks of a prefix takes out of reach."""
    if prefix is None:
        return 0
    if prefix.shared:
        return 0 if prefix.users else prefix.blocks
    parent = instance.shared[prefix.parent] if prefix.base > 0 else None
    whole = parent.blocks if parent is not None and not parent.users else 0
    return max(0, blocks - prefix.base) + whole


def can_admit(instance: Instance, call: Call, prefix: Prefix | None, blocks: int, growth: int) -> bool:
    """Whether the context fits beside the batch's growth, with the watermark left if anything runs."""
    need = blocks_for(instance, call.target) - blocks
    rest = instance.available - growth - pinned(instance, prefix, blocks) - need
    return rest >= (instance.watermark if instance.batch else 0)


def borrow(instance: Instance, call: Call, key: int, blocks: int) -> None:
    """The call uses the leading `blocks` blocks of the shared prefix `key`."""
    prefix = instance.shared[key]
    prefix.users.add(call)
    if prefix in instance.lru:
        instance.lru.remove(prefix)
    call.base, call.base_key = blocks, key


def take_context(instance: Instance, call: Call, prefix: Prefix | None, blocks: int) -> None:
    """Give the call, already in the batch, the blocks of its whole context, `blocks` of them cached."""
    call.base, call.base_key, call.own = 0, -1, 0
    if prefix is not None and prefix.shared:
        key = next(key for key, value in instance.shared.items() if value is prefix)
        borrow(instance, call, key, blocks)
    elif prefix is not None:
        forget(instance, prefix)
        if prefix.base > 0:
            borrow(instance, call, prefix.parent, min(blocks, prefix.base))
        call.own = blocks - call.base
    if call.row in instance.remnants:
        forget(instance, instance.remnants[call.row])
    make_free(instance, blocks_for(instance, call.target) - blocks)
    call.own = blocks_for(instance, call.target) - call.base
    call.kv = blocks * instance.block_size
    note_peak(instance)


def grow(instance: Instance, call: Call) -> None:
    """Bring the call's blocks up to its tokens."""
    need = blocks_for(instance, call.kv) - call.base - call.own
    if need > 0:
        make_free(instance, need)
        call.own += need
        note_peak(instance)


def note_peak(instance: Instance) -> None:
    """Remember the most blocks in use."""
    instance.kv_peak = max(instance.kv_peak, instance.blocks - instance.available)


def publish(instance: Instance, call: Call) -> None:
    """Prefill is done: the call's static prefix becomes a shared one that it uses itself."""
    want, key = call.shared_tokens // instance.block_size, call.shared_key
    if not instance.caching or key < 0 or want <= call.base:
        return
    known = instance.shared.get(key)
    if known is None and call.base == 0:
        instance.shared[key] = Prefix(want, shared=True, users={call})
    elif known is not None and call.base_key == key and known.blocks == call.base:
        known.blocks = want
    else:
        return
    call.own -= want - call.base
    call.base, call.base_key = want, key


def arrive(instance: Instance, call: Call) -> None:
    """KV of a call arrives: its full blocks stand here as if it had been preempted, as far as they fit.

    What stayed here is part of it unless it was evicted meanwhile, and then nothing behind the gap is of use.
    """
    tokens, standing = call.arrived, standing_tokens(instance, call)
    if call.at_home > standing:
        tokens = min(tokens, standing)
    if call.stream_key in instance.streams:
        forget(instance, instance.streams[call.stream_key])
    blocks = min(tokens // instance.block_size, instance.available)
    if blocks > 0:
        make_free(instance, blocks)
        instance.remnants[call.row] = Prefix(blocks)
        instance.lru.append(instance.remnants[call.row])


def give_back(instance: Instance, call: Call, table: dict[int, Prefix] | None, key: int) -> None:
    """The call, already out of the batch, leaves its full blocks in `table` under `key`, if given."""
    kept = call.kv // instance.block_size - call.base
    if table is not None and kept > 0:
        table[key] = Prefix(kept, call.base, call.base_key)
        instance.lru.append(table[key])
    if call.base > 0:
        parent = instance.shared[call.base_key]
        parent.users.remove(call)
        if not parent.users:
            instance.lru.append(parent)
    call.own, call.base, call.base_key = 0, 0, -1


def release(instance: Instance, call: Call) -> None:
    """The call ended: its context stays cached for the next call of its stream."""
    keep = instance.reuses and call.stream_key >= 0
    if keep and call.stream_key in instance.streams:
        forget(instance, instance.streams[call.stream_key])
    give_back(instance, call, instance.streams if keep else None, call.stream_key)
