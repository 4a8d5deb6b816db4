"""The way of a conversation (ConServe, section 2): prefill on the prefill tier, KV moved once, then one decoder.

A call that prefilled on the prefill tier leaves its blocks there at once, is sent to the decoder with most unreserved
KV, and decodes from what arrives. Where none has room it is held, first come first served; a conversation that holds
KV already is never held, so nobody waits for KV while keeping some. Later turns go to the pinned decoder. Under AMPD
a later turn may be sent back to the prefill tier, which fetches the history when its time comes, and back.
"""

from control.jit import compiled, compiled_apart
from control.policy.codes import (
    AMPD,
    BY_SLACK,
    BY_TIER,
    DECODE,
    DOWN,
    IN_QUEUE,
    IN_TRANSFER,
    INSTANCE_LOST,
    SENT,
    TRANSFER,
    UNFIT,
    UP,
)
from control.policy.cost import decode_alone_s, exec_s, prefill_alone_s
from control.policy.placement import (
    hands_over,
    has_decoder,
    may_decode,
    prefers_prefiller,
    score_prefillers,
    send_ms,
    transfer_ms,
)
from control.twin.choosing import choose, note_choice, only, roomiest, stay_at
from control.twin.heap import schedule, unschedule
from control.twin.held import hold, let_in
from control.twin.journal import note
from control.twin.kv import find_hit, install_kv, reach_of
from control.twin.phases import end_phase, hold_up
from control.twin.pins import (
    begin_turn,
    bind,
    context_tokens,
    lose_pin,
    pin_row,
    pinned_to,
    release_call,
)
from control.twin.placing import enqueue, record_placement, refuse
from control.twin.world import World

SLACK_FACTOR = 5.0  # the SLO of the paper: 5 x standalone


@compiled_apart
def put(world: World, c: int, i: int, t_comp_s: float) -> None:
    """Place call `c`, which is estimated to take `t_comp_s` there, on instance `i`."""
    world.t_comp_s[i] = t_comp_s
    record_placement(world, c, i)
    world.clock[0]["rotation"] = (i + 1) % len(world.instances)
    enqueue(world, c, i)


@compiled_apart
def put_here(world: World, c: int, i: int) -> None:
    """Place call `c` on instance `i`, where it prefills what no cache holds and decodes."""
    call, instance = world.calls[c], world.instances[i]
    call["handoff"] = 0
    call["target"] = context_tokens(world, c)
    _, blocks = find_hit(world, i, c)
    held = blocks * instance["block_size"]
    outputs = world.steps[call["step"]]["mean_output"]
    put(world, c, i, exec_s(world.costs, instance, call["target"], held, outputs))


@compiled
def put_prefill(world: World, c: int, i: int) -> None:
    """Place call `c` on instance `i` of the prefill tier, which fetches the KV of its `moving` leading tokens."""
    call = world.calls[c]
    call["handoff"] = 1
    tokens = context_tokens(world, c) - call["moving"]
    note_choice(world, c, BY_TIER)
    put(world, c, i, prefill_alone_s(world.costs, world.instances[i], tokens, call["moving"]))


@compiled
def settle_here(world: World, c: int) -> bool:
    """Place call `c`, whose KV is nowhere, on the roomiest decoder for all its work; whether one had room."""
    i = roomiest(world, c)
    if i < 0:
        return False
    bind(world, c, i)
    put_here(world, c, i)
    return True


@compiled
def move(world: World, c: int, source: int, i: int, arriving: int, behind: int) -> None:
    """Send KV of call `c` from instance `source` to `i`, where it finds `arriving` tokens, `behind` of them there."""
    moved = arriving - behind
    call, now_s = world.calls[c], world.clock[0]["now_s"]
    origin, s = world.instances[source], pin_row(world, c)
    call["state"] = TRANSFER
    call["instance"] = i
    call["moving"] = arriving
    call["behind"] = behind
    call["phase"] = IN_TRANSFER
    call["phase_s"] = now_s
    origin["sent"] += 1
    origin["sent_tokens"] += moved
    if s >= 0:
        world.pins[s]["sent"] += 1
    # a real decoder fetches the KV itself once it is asked: the time is part of its answer
    wait_ms = 0.0 if origin["remote"] == 1 else transfer_ms(world.costs, origin, moved)
    schedule(world.transfers, c, now_s + wait_ms * 1e-3)
    note(world, SENT, c, i)


@compiled_apart
def go_decode(world: World, c: int, source: int) -> bool:
    """Find call `c`, prefilled on `source`, its decoder: send its KV, or hold it; False: refused, none is up."""
    call = world.calls[c]
    if not has_decoder(world.policy[0], world.instances, context_tokens(world, c)):
        refuse(world, c)
        return False
    call["source"] = source
    i = pinned_to(world, c)
    if i < 0 or not may_decode(world.policy[0], world.instances[i], context_tokens(world, c)):
        release_call(world, c)
        i = roomiest(world, c)
        if i < 0:
            hold(world, c)
            return True
        bind(world, c, i)
    else:
        stay_at(world, c, i)
    move(world, c, source, i, call["kv"], 0)
    return True


@compiled_apart
def hand_over(world: World, i: int, c: int) -> bool:
    """Call `c` has prefilled on instance `i` and goes on elsewhere; False: it was refused."""
    call = world.calls[c]
    d = pinned_to(world, c)
    end_phase(world, c, IN_TRANSFER)
    call["handoff"] = 0
    if d >= 0 and call["moving"] > 0 and may_decode(world.policy[0], world.instances[d], context_tokens(world, c)):
        hold_up(world, i, send_ms(world.costs, world.instances[i], call["kv"] - call["moving"]))
        stay_at(world, c, d)
        move(world, c, i, d, call["kv"], call["moving"])
        return True
    hold_up(world, i, send_ms(world.costs, world.instances[i], call["kv"]))
    return go_decode(world, c, i)


@compiled_apart
def on_transfer_end(world: World, c: int) -> bool:
    """The KV of call `c` has arrived, or finds the instance gone; False: it was refused."""
    call = world.calls[c]
    i = call["instance"]
    instance = world.instances[i]
    unschedule(world.transfers, c)
    end_phase(world, c, IN_QUEUE)
    if instance["state"] == DOWN:
        return go_decode(world, c, call["source"])
    install_kv(world, i, c)
    only(world, i)
    call["moving"] = 0
    steps = world.steps[call["step"]]["mean_output"] - 1.0
    put(world, c, i, decode_alone_s(world.costs, instance, float(context_tokens(world, c)), steps))
    return True


@compiled
def goes_back(world: World, c: int, home: int, p: int) -> bool:
    """Whether AMPD sends a later turn, whose conversation is pinned to `home`, to prefiller `p`."""
    call, policy = world.calls[c], world.policy[0]
    if policy["router"] != BY_SLACK:
        return call["draw_b"] < policy["error"]
    wrong = max(0.0, 1.0 + policy["error"] * 1.7320508075688772 * (2.0 * call["draw_b"] - 1.0))
    tokens = max(1, int((call["input_tokens"] - call["history_tokens"]) * wrong))
    b, k = 0, 0
    for r in range(world.instances[home]["n_running"]):
        other = world.calls[world.running[home, r]]
        if other["state"] == DECODE:
            b += 1
            k += other["kv"]
    decoder, prefiller = world.instances[home], world.instances[p]
    return prefers_prefiller(world.costs, decoder, prefiller, call["history_tokens"], tokens, b, k, SLACK_FACTOR)


@compiled
def send_back(world: World, c: int, home: int) -> bool:
    """Under AMPD, place a later turn on the prefill tier if that is its route; whether it was."""
    call = world.calls[c]
    tokens = context_tokens(world, c)
    if not may_decode(world.policy[0], world.instances[home], tokens + 1):
        return False
    if not score_prefillers(world.instances, tokens, world.scores):
        return False
    p = choose(world, c)
    history = min(reach_of(world, home, c), tokens - 1)
    if history <= 0 or not goes_back(world, c, home, p):
        return False
    call["moving"] = history
    put_prefill(world, c, p)
    return True


@compiled_apart
def place_conversation(world: World, c: int) -> bool:
    """Place a call by the conversation policy in force: pinned, to the prefill tier, or held; False: refused."""
    call, policy, tokens = world.calls[c], world.policy[0], context_tokens(world, c)
    home = pinned_to(world, c)
    if home >= 0 and not may_decode(policy, world.instances[home], tokens):
        lose_pin(world, pin_row(world, c), UNFIT if world.instances[home]["state"] == UP else INSTANCE_LOST)
        home = -1
    begin_turn(world, c)
    if home >= 0:
        if policy["dispatch"] != AMPD or call["emitted"] > 0 or not send_back(world, c, home):
            stay_at(world, c, home)
            put_here(world, c, home)
        return True
    tiered = hands_over(policy) and has_decoder(policy, world.instances, tokens + 1)
    if tiered and score_prefillers(world.instances, tokens, world.scores):
        call["moving"] = 0
        put_prefill(world, c, choose(world, c))
    elif not has_decoder(policy, world.instances, tokens):
        refuse(world, c)
        return False
    elif not settle_here(world, c):
        hold(world, c)
    return True


@compiled_apart
def take_held(world: World, c: int, i: int) -> None:
    """Held call `c` goes to instance `i`."""
    let_in(world, c)
    bind(world, c, i)
    if world.calls[c]["emitted"] > 0:
        move(world, c, world.calls[c]["source"], i, world.calls[c]["kv"], 0)
    else:
        put_here(world, c, i)


@compiled_apart
def take_mates(world: World) -> None:
    """Let in held calls of workflows that have come to hold KV since: while they do they may not wait for others."""
    world.clock[0]["mates_held"] = 0
    c = world.clock[0]["held_head"]
    while c >= 0:
        after = world.calls[c]["next"]
        if world.workflows[world.calls[c]["workflow"]]["pins"] > 0:
            i = roomiest(world, c)
            if i >= 0:
                take_held(world, c, i)
        c = after


@compiled_apart
def retry_held(world: World) -> None:
    """Let held calls in, in order, as far as there is room."""
    if world.clock[0]["mates_held"] == 1:
        take_mates(world)
    while world.clock[0]["n_held"] > 0:
        c = world.clock[0]["held_head"]
        i = roomiest(world, c)
        if i < 0:
            return
        take_held(world, c, i)
