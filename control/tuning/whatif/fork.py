"""A fork: all that is needed to run a fleet ahead, apart from whatever goes on meanwhile."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from control.model.fleet import Fleet
from control.model.workload import Workload
from control.policy.codes import FUTURE
from control.policy.tables import Floats, Ints, Table
from control.tuning.episodes import Arrival, Episode, Names
from control.tuning.whatif.ahead import arrivals_ahead
from control.tuning.whatif.deck import Deck
from control.tuning.whatif.unknown import draw_unknown
from control.twin.caps import Switch
from control.twin.repack import repack
from control.twin.world import World, fork


class Fork(NamedTuple):
    """A state of a fleet and what is known of the work to come. Nothing in it is ever changed."""

    world: World  # real servers simulated, journal empty; it holds what is still to arrive only where `future` is set
    streams: Ints
    declared: Table
    fleet: Fleet  # under the caps in force, real servers simulated
    switches: tuple[Switch, ...]  # instances about to take the cost of another cap
    names: Names
    policy: str
    form: str  # of HexGen-Flow's dispatch score
    window_s: float  # over which live figures are taken, s
    recent: Floats  # [ended workflows, 4]: when, latency (s), met its SLO, ran to its end; of the last window
    since_s: float  # arrivals are known from here on
    arrivals: Sequence[Arrival | Episode]  # from there to the fork
    contents: Sequence[Episode]  # workflows that have ended
    future: dict[float, tuple[World, Ints]]  # by load: the state with the workload's own future taken in

    @property
    def now_s(self) -> float:
        """Simulated time of the fork, s."""
        return float(self.world.clock[0]["now_s"])


class Base(NamedTuple):
    """A world about to be run ahead; to be forked before that."""

    world: World
    streams: Ints


def resampled(given: Fork, deck: Deck, seed: int, load: float, slo_scale: float, horizon_s: float) -> Base:
    """The fork with one draw of what may arrive, and of how long what is under way may still be.

    The same seed draws the same for every setting: common random numbers.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    work = arrivals_ahead(given, deck, rng, load, horizon_s)
    work.workflows["slo_s"] *= slo_scale
    base = with_work(given, work)
    draw_unknown(base.world, deck.lengths, rng)
    return base


def own_future(given: Fork, load: float, slo_scale: float) -> Base:
    """The fork with what its workload really brings, true lengths included."""
    world, streams = given.future[load]
    world = fork(world)
    coming = world.workflows["state"] == FUTURE
    world.workflows["slo_s"][coming] *= slo_scale
    return Base(world, streams)


def with_work(given: Fork, work: Workload) -> Base:
    """The fork with `work` about to arrive."""
    used = work.calls["stream"] >= 0
    work.calls["stream"][used] += int(given.streams.max(initial=-1)) + 1
    return Base(*repack(given.world, given.streams, work, given.declared, drop_future=True))
