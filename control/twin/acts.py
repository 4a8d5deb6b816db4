"""The one door for what is done to a world from outside: deeds of operators and clients, answers of real servers."""

import numpy as np

from control.jit import compiled
from control.policy.codes import (
    ABANDON,
    ANSWERED,
    BEGIN_DRAIN,
    CLOSE,
    COME_BACK,
    FAIL,
    FIRST_TOKEN,
    GIVE_UP,
    METER,
    PREFILLED,
    REQUEST,
    SEND_AGAIN,
    SUSPEND,
    SWITCH_POLICY,
)
from control.policy.tables import Ints
from control.twin.conversations import retry_held
from control.twin.failures import (
    abandon,
    begin_drain,
    come_back,
    fail,
    give_up_workflow,
    send_again,
    suspend,
    switch_policy,
)
from control.twin.remote import begin_answer, grow_to, meter_all_remote
from control.twin.requests import answered, close, prefilled, request, send_dirty
from control.twin.world import World

NOTHING: Ints = np.full(6, -1, np.int64)


@compiled
def act(world: World, deed: int, row: int, other: int, numbers: Ints) -> bool:
    """Do one of the deeds now. Compiled as one function: each of them calls most of the model.

    `numbers` [6] of FIRST_TOKEN: tokens generated, us since the first; of ANSWERED: state, cause, input, generated and
    cached tokens, us since the first token (negative: not reported); of SEND_AGAIN: instances not to be taken.
    """
    done = True
    if deed == FAIL:
        fail(world, row)
    elif deed == COME_BACK:
        come_back(world, row)
    elif deed == BEGIN_DRAIN:
        begin_drain(world, row)
    elif deed == GIVE_UP:
        done = give_up_workflow(world, row)
    elif deed == SWITCH_POLICY:
        switch_policy(world, row, other)
    elif deed == REQUEST:
        request(world, row, other)
    elif deed == FIRST_TOKEN:
        begin_answer(world, row, numbers[1])
        grow_to(world, world.calls[row]["instance"], row, numbers[0])
        return True
    elif deed == ANSWERED:
        answered(world, row, numbers)
    elif deed == PREFILLED:
        prefilled(world, row)
    elif deed == SEND_AGAIN:
        send_again(world, row, numbers)
    elif deed == SUSPEND:
        suspend(world, row)
    elif deed == ABANDON:
        abandon(world, row)
    elif deed == CLOSE:
        close(world, row)
    elif deed == METER:
        meter_all_remote(world)
        return True
    retry_held(world)
    send_dirty(world)
    return done


def kill(world: World, i: int) -> None:
    """Instance `i` fails; see `fail`."""
    act(world, FAIL, i, 0, NOTHING)


def revive(world: World, i: int) -> None:
    """Instance `i` is back, empty, or ends its drain."""
    act(world, COME_BACK, i, 0, NOTHING)


def drain(world: World, i: int) -> None:
    """Instance `i` is given no new calls; see `begin_drain`."""
    act(world, BEGIN_DRAIN, i, 0, NOTHING)


def cancel(world: World, w: int) -> bool:
    """The client gives up workflow `w`; False: it is not under way."""
    return bool(act(world, GIVE_UP, w, 0, NOTHING))


def change_policy(world: World, dispatch: int, queue: int) -> None:
    """Put another policy in force; see `switch_policy`."""
    act(world, SWITCH_POLICY, dispatch, queue, NOTHING)
