"""Where conversations are kept: binding a stream to an instance, what is set aside for it, how a pin breaks."""

from control.jit import compiled, compiled_apart
from control.policy.codes import COMPACTED, EVICTED, EXPIRED, ORACLE, PIN_BROKEN
from control.policy.placement import blocks_for, needed_blocks, pins, places_conversations
from control.twin.heap import schedule, unschedule
from control.twin.journal import note
from control.twin.prefixes import drop_prefix
from control.twin.world import World


@compiled
def pin_row(world: World, c: int) -> int:
    """Row of the pin of call `c`'s stream; -1 where it has no stream."""
    key = world.calls[c]["stream_key"]
    return key - world.clock[0]["n_shared"] if key >= 0 else -1


@compiled
def pinned_to(world: World, c: int) -> int:
    """Instance that call `c`'s conversation is pinned to, -1: none."""
    s = pin_row(world, c)
    return world.pins[s]["instance"] if s >= 0 else -1


@compiled
def context_tokens(world: World, c: int) -> int:
    """Tokens of context of call `c` as it stands: what was sent and what it generated."""
    return world.calls[c]["input_tokens"] + world.calls[c]["emitted"]


@compiled
def peak_tokens(world: World, c: int) -> int:
    """Most tokens that the conversation of call `c` will hold, for the oracle need."""
    s, call = pin_row(world, c), world.calls[c]
    own = call["input_tokens"] + call["output_tokens"]
    return world.pins[s]["peak"] if s >= 0 and pins(world.policy[0]) else own


@compiled
def set_reserved(world: World, s: int, blocks: int) -> None:
    """Set `blocks` aside for pinned stream `s` instead of what was."""
    pin = world.pins[s]
    world.instances[pin["instance"]]["reserved"] += blocks - pin["reserved"]
    pin["reserved"] = blocks


@compiled
def release_pin(world: World, s: int) -> None:
    """Stream `s` is pinned no more; all that was set aside for it is free (ConServe, section 2)."""
    pin = world.pins[s]
    if pin["instance"] < 0:
        return
    set_reserved(world, s, 0)
    world.instances[pin["instance"]]["pinned"] -= 1
    world.workflows[pin["workflow"]]["pins"] -= 1
    pin["instance"] = -1
    unschedule(world.expiries, s)


@compiled
def release_call(world: World, c: int) -> None:
    """What was set aside for call `c` alone is free."""
    call = world.calls[c]
    if call["reserved"] > 0:
        world.instances[call["dest"]]["reserved"] -= call["reserved"]
        call["reserved"] = 0
    call["dest"] = -1


@compiled_apart
def bind(world: World, c: int, i: int) -> None:
    """Set KV aside on instance `i` for call `c`: for its whole conversation where that is pinned, else for itself."""
    call, instance, s = world.calls[c], world.instances[i], pin_row(world, c)
    blocks = 0
    if places_conversations(world.policy[0]):
        blocks = needed_blocks(world.policy[0], instance, context_tokens(world, c), peak_tokens(world, c))
    if s < 0 or not pins(world.policy[0]):
        release_call(world, c)
        call["dest"] = i
        call["reserved"] = blocks
        instance["reserved"] += blocks
        return
    release_pin(world, s)
    world.pins[s]["instance"] = i
    world.pins[s]["workflow"] = call["workflow"]
    instance["pinned"] += 1
    world.workflows[call["workflow"]]["pins"] += 1
    if world.workflows[call["workflow"]]["held"] > 0:
        world.clock[0]["mates_held"] = 1
    set_reserved(world, s, blocks)


@compiled
def follow_context(world: World, c: int) -> None:
    """Let what is set aside for a pinned conversation follow its context, unless it was set aside for the peak."""
    s = pin_row(world, c)
    if s >= 0 and world.pins[s]["instance"] >= 0 and world.policy[0]["need"] != ORACLE:
        size = world.instances[world.pins[s]["instance"]]["block_size"]
        if places_conversations(world.policy[0]):
            set_reserved(world, s, blocks_for(context_tokens(world, c), size))


@compiled
def note_break(world: World, c: int, s: int, cause: int) -> None:
    """Call `c` found the KV of its conversation gone."""
    world.pins[s]["breaks"] += 1
    world.pins[s]["break_cause"] = cause
    world.clock[0]["breaks"] += 1
    note(world, PIN_BROKEN, c, cause)


@compiled_apart
def note_recompute(world: World, i: int, c: int, tokens: int) -> None:
    """Call `c` computes `tokens` tokens of its history again, being admitted on instance `i`."""
    s = pin_row(world, c)
    pin = world.pins[s]
    pin["recomputed"] += tokens
    if pin["instance"] == i and pin["at_home"] == 1 and world.instances[i]["caching"] == 1:
        note_break(world, c, s, EVICTED)


@compiled_apart
def begin_turn(world: World, c: int) -> None:
    """A turn of a stream is about to be placed: it is idle no more, and what became of its pin shows."""
    s = pin_row(world, c)
    if s < 0:
        return
    pin, call = world.pins[s], world.calls[c]
    unschedule(world.expiries, s)
    pin["at_home"] = 1 if pin["instance"] >= 0 else 0
    if pin["turns"] > 0 and call["emitted"] == 0:
        if pin["instance"] < 0 and pin["lost_cause"] >= 0:
            note_break(world, c, s, pin["lost_cause"])
            pin["lost_cause"] = -1
        elif call["input_tokens"] < pin["prompt_tokens"] and call["restarts"] == 0:
            note_break(world, c, s, COMPACTED)
    follow_context(world, c)


@compiled_apart
def end_turn(world: World, c: int) -> None:
    """Call `c` completed: its conversation is idle until the next turn."""
    call, now_s, s = world.calls[c], world.clock[0]["now_s"], pin_row(world, c)
    release_call(world, c)
    if s < 0:
        return
    pin, policy = world.pins[s], world.policy[0]
    pin["turns"] += 1
    pin["tokens"] = context_tokens(world, c)
    pin["prompt_tokens"] = call["input_tokens"]
    pin["input_tokens"] += call["input_tokens"]
    pin["cached_tokens"] += min(call["cached_tokens"], call["input_tokens"])
    pin["last_s"] = now_s
    pin["first_token_s"] = call["first_token_s"]
    if pin["instance"] >= 0:
        follow_context(world, c)
        if policy["idle_ttl_s"] < 1e300:
            schedule(world.expiries, s, now_s + policy["idle_ttl_s"])


@compiled
def drop_context(world: World, s: int) -> None:
    """Free the KV that stream `s` left where it is pinned."""
    i, key = world.pins[s]["instance"], s + world.clock[0]["n_shared"]
    if i >= 0 and world.slots[i, key] >= 0:
        drop_prefix(world, i, world.slots[i, key])


@compiled
def lose_pin(world: World, s: int, cause: int) -> None:
    """Stream `s` loses its instance; its next turn is placed anew."""
    if world.pins[s]["instance"] >= 0:
        release_pin(world, s)
        world.pins[s]["lost_cause"] = cause


@compiled_apart
def on_expiry(world: World, s: int) -> None:
    """Stream `s` was idle for as long as a context is kept."""
    unschedule(world.expiries, s)
    drop_context(world, s)
    lose_pin(world, s, EXPIRED)


@compiled_apart
def end_conversations(world: World, w: int) -> None:
    """Workflow `w` ended: its conversations are pinned no more."""
    workflow = world.workflows[w]
    for c in range(workflow["first_call"], workflow["first_call"] + workflow["n_calls"]):
        s = pin_row(world, c)
        if s >= 0 and world.pins[s]["instance"] >= 0 and world.pins[s]["workflow"] == w:
            drop_context(world, s)
            release_pin(world, s)
