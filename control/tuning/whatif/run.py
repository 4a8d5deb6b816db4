"""One run ahead: what an operator would see over the next minutes, and what it comes to."""

from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from control.metrics.latency import mean, percentile
from control.metrics.slo import overdue_s
from control.policy.codes import BROKEN, COMPLETED, DONE, REFUSED
from control.policy.tables import Floats, Table
from control.tuning.whatif.apply import Course, put_in_force
from control.tuning.whatif.fork import Base, Fork
from control.tuning.whatif.spec import Setting
from control.twin.observe import VIEW, view_all
from control.twin.world import World, fork

STEPS = 30  # points of a line
PIECE_S, LEAST_PIECE_S = 10.0, 0.05  # simulated s from one question whether to go on to the next
SLOW_S = 0.25  # wall s: a piece that takes longer is followed by a shorter one
LINES = ("p95_s", "slo_debt_s", "queued", "power_w")
FIGURES = (
    *("p50_s", "p95_s", "mean_s", "slo_attainment", "slo_debt_s", "throughput_wps"),
    *("ttft_p95_s", "ttfet_p95_s", "tokens_per_joule", "power_w", "refused"),
)


class Ahead(NamedTuple):
    """What came of one run."""

    lines: Floats  # [LINES, STEPS]; nan where there is nothing to show
    figures: Floats  # [FIGURES]; nan where nothing was measured
    events: int


def times_ahead_s(horizon_s: float) -> Floats:
    """When a line has its points, s after the fork [STEPS]."""
    return np.linspace(horizon_s / STEPS, horizon_s, STEPS)


def run_ahead(
    given: Fork, base: Base, setting: Setting, horizon_s: float, ask: Callable[[float], None] = lambda ran_s: None
) -> Ahead:
    """The fork with `base`'s work, run ahead under a setting. Releases the GIL while the world moves.

    Args:
        given: the fork.
        base: it with work about to arrive.
        setting: put in force at the fork.
        horizon_s: how far ahead, simulated s.
        ask: called with the simulated s that have been run since, often; what it raises ends the run.

    Raises:
        SettingError: the setting cannot be put in force on this fleet.
    """
    course = Course(fork(base.world), given.fleet, list(given.switches))
    put_in_force(course, setting, given.form)
    begun = begin(course.world, given.now_s)
    lines: Floats = np.full((len(LINES), STEPS), np.nan)
    piece_s = PIECE_S
    for k, time_s in enumerate(times_ahead_s(horizon_s)):
        piece_s = run_on(course, given.now_s + time_s, piece_s, ask)
        lines[1:, k] = look(course.world, course.now_s)
    ended = ended_rows(course.world, given.now_s)
    lines[0] = p95_line(given, ended, times_ahead_s(horizon_s))
    events = int(course.world.clock[0]["events"] - base.world.clock[0]["events"])
    return Ahead(lines, figures(course.world, ended, begun, given.now_s, horizon_s), events)


def run_on(course: Course, until_s: float, piece_s: float, ask: Callable[[float], None]) -> float:
    """Let a world run to `until_s` in pieces of about `piece_s`; the size of the next one, simulated s.

    Where it stops on its way changes nothing of what happens.
    """
    while course.now_s < until_s:
        before_s, begun_s = course.now_s, monotonic()
        course.run_to(until_s if before_s + piece_s > until_s - 1e-6 else before_s + piece_s)
        is_slow = monotonic() - begun_s > SLOW_S
        piece_s = max(LEAST_PIECE_S, piece_s / 2.0) if is_slow else min(PIECE_S, piece_s * 1.25)
        ask(course.now_s - before_s)
    return piece_s


class Begun(NamedTuple):
    """Totals at the fork."""

    energy_j: float


def views_of(world: World, at_s: float) -> Table:
    """One VIEW row per instance."""
    views = np.zeros(len(world.instances), VIEW)
    view_all(world, at_s, views)
    return views


def begin(world: World, now_s: float) -> Begun:
    """The totals that figures count from."""
    return Begun(float(views_of(world, now_s)["energy_j"].sum()))


def look(world: World, now_s: float) -> tuple[float, float, float]:
    """SLO debt of active workflows (s), waiting calls, and W of the fleet, at a moment."""
    debt_s = float(overdue_s(world.workflows, now_s).sum())
    return debt_s, float(world.instances["n_waiting"].sum()), float(views_of(world, now_s)["power_w"].sum())


def ended_rows(world: World, since_s: float) -> Table:
    """Workflows that have ended since."""
    rows = world.workflows
    ended: Table = rows[np.isin(rows["state"], (DONE, BROKEN)) & (rows["finished_s"] > since_s)]
    return ended


def p95_line(given: Fork, ended: Table, times_s: Floats) -> Floats:
    """P95 latency (s) of what ran to its end in the last window, at each of `times_s` after the fork [STEPS]."""
    done = ended[ended["state"] == DONE]
    past = given.recent[given.recent[:, 3] > 0.0] if len(given.recent) else np.zeros((0, 4))
    at_s = np.concatenate([past[:, 0], done["finished_s"]])
    latency_s = np.concatenate([past[:, 1], done["finished_s"] - done["arrival_s"]])
    line: Floats = np.full(len(times_s), np.nan)
    for k, time_s in enumerate(given.now_s + times_s):
        seen = latency_s[(at_s > time_s - given.window_s) & (at_s <= time_s)]
        if len(seen):
            line[k] = np.percentile(seen, 95)
    return line


def figures(world: World, ended: Table, begun: Begun, since_s: float, horizon_s: float) -> Floats:
    """What the horizon came to, in the order of FIGURES."""
    now_s = since_s + horizon_s
    done = ended[ended["state"] == DONE]
    latencies_s = done["finished_s"] - done["arrival_s"]
    met = int((latencies_s <= done["slo_s"]).sum())
    joules = float(views_of(world, now_s)["energy_j"].sum()) - begun.energy_j
    debt_s = float(np.maximum(0.0, latencies_s - done["slo_s"]).sum() + overdue_s(world.workflows, now_s).sum())
    told = (
        percentile(latencies_s, 50),
        percentile(latencies_s, 95),
        mean(latencies_s),
        met / len(ended) if len(ended) else None,
        debt_s,
        len(done) / horizon_s,
        percentile(ttfts_of(world, since_s), 95),
        percentile(ttfets_of(world, since_s), 95),
        tokens_of(world, since_s) / joules if joules > 0.0 else None,
        joules / horizon_s,
        float(((world.calls["state"] == REFUSED) & (world.calls["finished_s"] > since_s)).sum()),
    )
    return np.array([np.nan if value is None else value for value in told])


# A call's row is half a kB: what follows reads single columns of it and copies no rows, unlike control.metrics.


def completed_since(world: World, since_s: float) -> Any:
    """Which calls have completed since [calls]."""
    return (world.calls["state"] == COMPLETED) & (world.calls["finished_s"] > since_s)


def ttfts_of(world: World, since_s: float) -> Floats:
    """TTFT (s) of the calls that completed since."""
    done = completed_since(world, since_s)
    return np.asarray(world.calls["first_token_s"][done] - world.calls["ready_s"][done])


def tokens_of(world: World, since_s: float) -> float:
    """Full-context tokens of the calls that completed since."""
    done = completed_since(world, since_s)
    return float(world.calls["input_tokens"][done].sum() + world.calls["emitted"][done].sum())


def ttfets_of(world: World, since_s: float) -> Floats:
    """TTFET (s): first token of the last turn minus arrival, of the workflows that ran to their end since."""
    flows, group, owner = world.workflows, world.calls["group"], world.calls["workflow"]
    ran = (flows["state"] == DONE) & (flows["finished_s"] > since_s)
    last = group[np.maximum(flows["first_call"] + flows["n_calls"] - 1, 0)]
    mine = np.flatnonzero((group == last[owner]) & ran[owner] & (world.calls["state"] == COMPLETED))
    first_s: Floats = np.full(len(flows), np.inf)
    np.minimum.at(first_s, owner[mine], world.calls["first_token_s"][mine])
    seen = np.isfinite(first_s)
    return np.asarray(first_s[seen] - flows["arrival_s"][seen])
