"""Dispatch: every call that becomes ready is placed by the policy in force."""

import math

from control.jit import compiled, compiled_apart
from control.policy.codes import BY_SCORE, INSTANCE_LOST, PREFIX, SESSION, UNFIT, UP
from control.policy.dispatch import estimate_all, score_all
from control.policy.eligible import count_eligible
from control.policy.placement import places_conversations
from control.twin.choosing import choose, note_choice
from control.twin.conversations import place_conversation
from control.twin.kv import find_hit
from control.twin.pins import begin_turn, bind, lose_pin, pin_row, pinned_to
from control.twin.placing import enqueue, record_placement, refuse
from control.twin.world import World


@compiled_apart
def prefer_context(world: World, c: int) -> None:
    """Fill the scores of instances that may take call `c` with the tokens of its context that stand there.

    Session affinity counts the whole context for the instance of the conversation's last turn, whatever is left there.
    Ties go to the instance with least queued work.
    """
    call, home = world.calls[c], pinned_to(world, c)
    for i in range(len(world.instances)):
        if world.t_comp_s[i] == math.inf:
            world.scores[i] = -math.inf
        elif world.policy[0]["dispatch"] == SESSION:
            world.scores[i] = 1.0 if i == home else 0.0
        else:
            call["target"] = call["input_tokens"] + call["emitted"]
            _, blocks = find_hit(world, i, c)
            world.scores[i] = float(blocks * world.instances[i]["block_size"])


@compiled
def seek_home(world: World, c: int) -> None:
    """A conversation whose instance may not take its next turn call `c` is pinned there no more."""
    home = pinned_to(world, c)
    if home >= 0 and world.t_comp_s[home] == math.inf:
        lose_pin(world, pin_row(world, c), UNFIT if world.instances[home]["state"] == UP else INSTANCE_LOST)
    begin_turn(world, c)


@compiled
def place(world: World, c: int) -> bool:
    """Dispatch call `c` by the policy in force; False: it was refused, no instance could take it."""
    call, clock, policy = world.calls[c], world.clock[0], world.policy[0]
    call["handoff"] = 0
    if places_conversations(policy):
        return place_conversation(world, c)
    if count_eligible(world.instances, call) == 0:
        refuse(world, c)
        return False
    estimate_all(world.costs, world.instances, world.steps, call, 0, world.t_comp_s)
    if policy["dispatch"] == SESSION or policy["dispatch"] == PREFIX:
        if policy["dispatch"] == SESSION:
            seek_home(world, c)
        prefer_context(world, c)
    else:
        score_all(policy, world.instances, call, clock["rotation"], world.t_comp_s, world.scores)
    i = choose(world, c)
    if policy["dispatch"] == SESSION and pin_row(world, c) >= 0 and pinned_to(world, c) != i:
        bind(world, c, i)
    note_choice(world, c, BY_SCORE)
    record_placement(world, c, i)
    clock["rotation"] = (i + 1) % len(world.instances)
    enqueue(world, c, i)
    return True
