"""What a placement was worth: the past replayed as it was, and with one call placed on the runner-up."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from control.policy.codes import BROKEN, DONE
from control.policy.tables import Floats
from control.tuning.replay import Past
from control.twin.kernel import advance
from control.twin.world import World, fork

Row = dict[str, Any]
STEP_S = 5.0  # simulated s from one look at the workflow to the next
LONGEST_S = 7200.0  # simulated s after the placement until which its workflow must have ended
AFTERMATH_S = 60.0  # simulated s after its end in which others are looked at too
EXACT_S = 1e-6


class Placed(NamedTuple):
    """A placement that was made, by what stays the same in every replay of it."""

    arrival_s: float  # of its workflow
    nth: int  # place of the call in its workflow
    instance: int  # row of the instance that took it
    other: int  # and of the one that came second
    placed_s: float
    latency_s: float  # of its workflow, as it really was


class LostError(Exception):
    """The replay does not come to the placement."""


def regret(past: Past, placed: Placed, known_s: float, tell: Callable[[], None] = lambda: None) -> Row:
    """Latency of the workflow and debt of all as the placement was made, and with the runner-up in its place.

    Args:
        past: a state from before the placement, and what has come since.
        placed: the placement.
        known_s: simulated time up to which the arrivals are known.
        tell: called now and then; what it raises ends the replay.

    Raises:
        LostError: the replay does not hold the call, or the runner-up could not take it.
    """
    begun_s = time.perf_counter()
    base, _ = past.as_it_came(0)
    rows = np.flatnonzero(base.workflows["arrival_s"] == placed.arrival_s)
    if not len(rows) or placed.nth >= base.workflows[rows[0]]["n_calls"]:
        raise LostError("the kept state and what came since do not hold its workflow")
    w = int(rows[0])
    c = int(base.workflows[w]["first_call"]) + placed.nth
    was = ended(fork(base), w, placed.placed_s, tell)
    other = ended(sent_to(base, c, placed.other), w, placed.placed_s, tell)
    if not went_to(other, c, placed.other):
        raise LostError("the runner-up did not come up for the call when its past was replayed")
    last_s = max(float(world.workflows[w]["finished_s"]) for world in (was, other))
    until_s = max(last_s, min(last_s + AFTERMATH_S, known_s))
    for world in (was, other):
        advance(world, until_s)
    return figures(past, base, (was, other), (w, c), placed, until_s) | {"wall_s": time.perf_counter() - begun_s}


def sent_to(base: World, c: int, i: int) -> World:
    """`base`, forked, with call `c` placed on instance `i` wherever that is a candidate."""
    world = fork(base)
    world.calls[c]["wanted"] = i
    return world


def went_to(world: World, c: int, i: int) -> bool:
    """Whether call `c` was on instance `i`, for its prefill or for the rest."""
    return i in (int(world.calls[c]["instance"]), int(world.calls[c]["source"]))


def ended(world: World, w: int, placed_s: float, tell: Callable[[], None]) -> World:
    """`world`, run until its workflow `w` has ended, or a little longer.

    Raises:
        LostError: it does not end.
    """
    until_s = float(world.clock[0]["now_s"])
    while world.workflows[w]["state"] not in (DONE, BROKEN):
        tell()
        until_s += STEP_S
        if until_s > placed_s + LONGEST_S:
            raise LostError(f"its workflow does not end within {LONGEST_S:g} simulated s")
        advance(world, until_s)
    return world


def latencies_s(world: World) -> Floats:
    """Time from arrival to end of each workflow, s; meaningless where it has not ended."""
    found: Floats = world.workflows["finished_s"] - world.workflows["arrival_s"]
    return found


def figures(
    past: Past, base: World, pair: tuple[World, World], call: tuple[int, int], placed: Placed, until_s: float
) -> Row:
    """Both replays as numbers: of the workflow, of all that ended in both up to `until_s`, and by instance."""
    (w, c), (was, other) = call, pair
    replayed_s, other_s = (float(latencies_s(world)[w]) for world in pair)
    both = np.ones(len(was.workflows), np.bool_)
    for world in pair:
        finished_s = world.workflows["finished_s"]
        both &= (finished_s > placed.placed_s) & (finished_s <= until_s)
    debts_s = [float(np.maximum(0.0, latencies_s(one)[both] - one.workflows["slo_s"][both]).sum()) for one in pair]
    return {
        "state_sim_s": float(base.clock[0]["now_s"]),
        "until_sim_s": until_s,
        "latency_s": placed.latency_s,
        "replayed_s": replayed_s,
        "other_s": other_s,
        "difference_s": other_s - replayed_s,
        "is_exact": abs(replayed_s - placed.latency_s) <= EXACT_S and went_to(was, c, placed.instance),
        "workflows": int(both.sum()),
        "debt_s": debts_s[0],
        "other_debt_s": debts_s[1],
        "per_instance": [
            {
                "instance": name,
                "busy_s": float(was.instances[i]["busy_s"] - base.instances[i]["busy_s"]),
                "other_busy_s": float(other.instances[i]["busy_s"] - base.instances[i]["busy_s"]),
                "finished": int(was.instances[i]["finished"] - base.instances[i]["finished"]),
                "other_finished": int(other.instances[i]["finished"] - base.instances[i]["finished"]),
            }
            for i, name in enumerate(past.instances)
        ],
    }
