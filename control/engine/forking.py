"""A fork of the live state, now or some minutes back, apart from the live tables."""

import copy
from collections.abc import Sequence

import numpy as np

from control.engine.history import History
from control.engine.state import Live, rescale, take_windows
from control.engine.tuner import past_of
from control.errors import SettingError
from control.metrics.stages import UNDER_WAY
from control.policy.codes import ACTIVE, PLANNED
from control.policy.tables import Floats, Ints, Record
from control.tuning.episodes import Arrival, Episode, Names, arrival, episode
from control.tuning.imagine import imagined, unplugged
from control.tuning.whatif.deck import deck_of
from control.tuning.whatif.fork import Fork
from control.tuning.whatif.spec import OWN, Spec
from control.tuning.whatif.unknown import drawn
from control.twin.kernel import advance
from control.twin.world import World, fork, silent

LEAST_ARRIVALS = 5  # fewer say nothing of what will come
LEAST_WINDOW_S, MOST_WINDOW_S = 600.0, 1800.0  # arrivals are drawn from so many last seconds


def fork_of(live: Live, history: History, spec: Spec) -> Fork:
    """What `spec` asks to be run ahead.

    Raises:
        SettingError: too little is known of the work, or of the past that is asked for.
    """
    if spec.arrivals == OWN and live.source.is_gateway:
        raise SettingError("arrivals = 'own': requests of clients have no future that is known")
    if spec.back_s > 0.0:
        return fork_of_then(live, history, spec)
    world = fork(silent(live.world))
    futures = own_futures(live, spec) if spec.arrivals == OWN else {}
    return about(live, history, spec, world, live.streams.copy(), futures, recent_of(live))


def fork_of_then(live: Live, history: History, spec: Spec) -> Fork:
    """The state of `spec.back_s` ago, out of one that was kept and what came since.

    Raises:
        SettingError: no state is kept from so far back, or what came since does not cover the horizon.
    """
    then_s = live.now_s - spec.back_s
    recorded = history.after(live, then_s)
    if recorded is None or not history.ended:
        raise SettingError(f"back_s = {spec.back_s:g}: no state is kept from so long ago; {reach_words(live, history)}")
    if spec.arrivals == OWN and spec.horizon_s > spec.back_s:
        raise SettingError("arrivals = 'own': what came since then is known, what comes from now on is not")
    past = past_of(live, history, recorded._replace(arrivals=filled(live, history, recorded.arrivals)))
    world, _ = past.as_it_came(0)
    world = fork(silent(world))
    world.policy[:] = recorded.state.policy
    advance(world, then_s)
    streams = np.arange(len(world.pins), dtype=np.int64)
    futures = {1.0: (fork(world), streams)} if spec.arrivals == OWN else {}
    return about(live, history, spec, world, streams, futures, ended_by(history, then_s, live.rolling.window_s))


def filled(live: Live, history: History, arrivals: Sequence[Arrival | Episode]) -> list[Arrival | Episode]:
    """`arrivals`; one under way of a kind of which nothing has ended gets its calls from the live world.

    Their output lengths are drawn from what is on record of their steps, as `draw_unknown` does: nobody looks them up.
    """
    kinds = {content.kind for content in history.ended}
    strange = {a.arrival_s for a in arrivals if not isinstance(a, Episode) and a.kind not in kinds}
    if not strange:
        return list(arrivals)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0)))
    lengths = deck_of(list(history.ended), len(live.names[2])).lengths
    rows = live.world.workflows
    active = rows[(rows["state"] == ACTIVE) & np.isin(rows["arrival_s"], list(strange))]
    found = {(float(row["arrival_s"]), int(row["kind"])): imagined_episode(live, row, lengths, rng) for row in active}
    return [a if isinstance(a, Episode) else found.get((a.arrival_s, a.kind), a) for a in arrivals]


def imagined_episode(live: Live, workflow: Record, lengths: Sequence[Ints], rng: np.random.Generator) -> Episode:
    """An active workflow of the live world with drawn lengths of the answers that are not complete."""
    first, n = int(workflow["first_call"]), int(workflow["n_calls"])
    known = live.world.calls[first : first + n]
    one = episode(workflow, known)
    tokens = drawn(lengths, known["step"], known["emitted"], rng.random(n), known["output_tokens"].copy())
    is_open = np.isin(known["state"], (*UNDER_WAY, PLANNED))
    one.calls["output_tokens"] = np.where(is_open, tokens, known["output_tokens"])
    return one


def about(
    live: Live,
    history: History,
    spec: Spec,
    world: World,
    streams: Ints,
    futures: dict[float, tuple[World, Ints]],
    recent: Floats,
) -> Fork:
    """The fork with what is known of the work.

    Raises:
        SettingError: too little is known.
    """
    now_s = float(world.clock[0]["now_s"])
    window_s = min(MOST_WINDOW_S, max(LEAST_WINDOW_S, 2.0 * spec.horizon_s))
    since_s = max(history.began_s or 0.0, now_s - window_s)
    arrivals = arrivals_between(live, history, since_s, now_s)
    if spec.arrivals != OWN and (len(arrivals) < LEAST_ARRIVALS or not history.ended):
        raise SettingError(
            f"{len(arrivals)} workflows arrived in the last {now_s - since_s:.0f} s, {len(history.ended)} have ended: "
            "too few to draw from; wait a little"
        )
    kinds, tenants, steps = (tuple(part) for part in live.names)
    return Fork(
        world=imagined(world),
        streams=streams,
        declared=live.declared,
        fleet=unplugged(live.fleet),
        switches=tuple(live.switches) if spec.back_s == 0.0 else (),
        names=Names(kinds, tenants, steps, int(live.world.clock[0]["n_shared"])),
        policy=live.policy,
        form=live.source.form,
        window_s=live.rolling.window_s,
        recent=recent,
        since_s=since_s,
        arrivals=arrivals,
        contents=[e for e in history.ended if e.arrival_s + 1e-9 < now_s],
        future=futures,
    )


def arrivals_between(live: Live, history: History, since_s: float, until_s: float) -> list[Arrival | Episode]:
    """The workflows that arrived then, as far as they are on record, in order."""
    rows = live.world.workflows
    arrived: list[Arrival | Episode] = [e for e in history.ended if since_s < e.arrival_s <= until_s]
    active = rows[(rows["state"] == ACTIVE) & (rows["arrival_s"] > since_s) & (rows["arrival_s"] <= until_s)]
    arrived += [arrival(row) for row in active]
    return sorted(arrived, key=lambda a: a.arrival_s)


def own_futures(live: Live, spec: Spec) -> dict[float, tuple[World, Ints]]:
    """By load: the live state with all that its workload brings within the horizon taken in."""
    futures = {}
    for load in sorted({setting.load for setting in spec.settings}):
        ahead = copy.copy(live)
        ahead.world, ahead.streams = fork(silent(live.world)), live.streams.copy()
        if load != 1.0:
            if live.source.scenario is None:
                raise SettingError("load: a replayed trace has its own arrivals; draw them (arrivals = 'resampled')")
            rescale(ahead, load * live.load_scale)
        take_windows(ahead, live.now_s + spec.horizon_s)
        futures[load] = (ahead.world, ahead.streams)
    return futures


def recent_of(live: Live) -> Floats:
    """The workflows that ended in the last window [n, 4]: when, latency (s), met its SLO, ran to its end."""
    rows = [[float(value) for value in ended] for ended in live.rolling.ended]
    return np.array(rows, np.float64).reshape(len(rows), 4)


def ended_by(history: History, then_s: float, window_s: float) -> Floats:
    """As `recent_of`, of a moment in the past; whether an SLO was met is not on record (0)."""
    rows = [[at + latency, latency, 0.0, 1.0] for at, latency in history.latencies]
    table = np.array(rows, np.float64).reshape(len(rows), 4)
    known: Floats = table[(table[:, 0] <= then_s) & (table[:, 0] > then_s - window_s)]
    return known


def reach_words(live: Live, history: History) -> str:
    """How far back a fork may lie, in words."""
    if not history.states:
        return "none is kept yet"
    oldest_s = float(history.states[0][0].clock[0]["now_s"])
    return f"the oldest is {live.now_s - oldest_s:.0f} s old"
