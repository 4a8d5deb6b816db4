"""Choosing an instance by its score, and a receipt of what was compared."""

import math

from control.jit import compiled, compiled_apart
from control.policy.codes import BY_PIN, BY_ROOM, BY_SCORE, CANDIDATE, HELD
from control.policy.dispatch import best_instance
from control.policy.eligible import why_not
from control.policy.placement import score_any_decoder, score_decoders
from control.twin.pins import context_tokens, peak_tokens
from control.twin.world import World


@compiled
def choose(world: World, c: int) -> int:
    """Instance with the best score for call `c`, or the one a replay wants if that is a candidate; -1: none."""
    wanted = world.calls[c]["wanted"]
    if wanted >= 0 and world.scores[wanted] > -math.inf:
        return wanted
    return best_instance(world.instances, world.scores, world.clock[0]["rotation"], -1)


@compiled_apart
def keep_receipt(world: World, c: int, basis: int) -> None:
    """Write down what the placement of call `c` is decided on: a row for every instance, candidate or not."""
    call = world.calls[c]
    k = call["receipt"] % len(world.receipts)
    for i in range(len(world.instances)):
        row, instance = world.receipts[k, i], world.instances[i]
        row["t_comp_s"] = world.t_comp_s[i] if basis == BY_SCORE else math.nan
        row["t_queue_s"] = instance["queued_work_s"]
        row["score"] = world.scores[i]
        row["why"] = CANDIDATE
        if world.scores[i] == -math.inf:
            row["why"] = why_not(world.policy[0], instance, call, basis)


@compiled
def note_choice(world: World, c: int, basis: int) -> None:
    """The scores at hand decide where call `c` goes; a world without room for receipts only numbers them."""
    world.calls[c]["receipt"] = world.clock[0]["n_receipts"]
    world.clock[0]["n_receipts"] += 1
    if len(world.receipts) > 0:
        keep_receipt(world, c, basis)


@compiled
def only(world: World, i: int) -> None:
    """Have no runner-up recorded: instance `i` was the only choice."""
    world.scores[:] = -math.inf
    world.scores[i] = 0.0


@compiled
def stay_at(world: World, c: int, home: int) -> None:
    """Call `c` goes to instance `home`, where its conversation is kept."""
    only(world, home)
    note_choice(world, c, BY_PIN)


@compiled
def roomiest(world: World, c: int) -> int:
    """Instance with most unreserved KV among those that have the need of call `c` free, -1: none.

    A conversation that holds KV already takes the roomiest, whatever it has free; no other passes those that are held.
    """
    policy, context = world.policy[0], context_tokens(world, c)
    world.scores[:] = -math.inf
    if world.workflows[world.calls[c]["workflow"]]["pins"] > 0:
        score_any_decoder(policy, world.instances, context, world.scores)
    elif world.clock[0]["n_held"] == 0 or world.calls[c]["state"] == HELD:
        score_decoders(policy, world.instances, context, peak_tokens(world, c), world.scores)
    i = choose(world, c)
    if i >= 0:
        note_choice(world, c, BY_ROOM)
    return i
