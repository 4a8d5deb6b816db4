"""The live tuner: when to run, the run beside the loop, what follows from it, and whether it kept its promise.

A run works on forks of past states on another thread, without the GIL; the loop only asks whether it has ended.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from control.engine.history import History
from control.engine.state import Live
from control.policy.codes import FUTURE
from control.policy.tables import Ints, Table
from control.tuning.alpha import CONFIRMATIONS, Choice, sweep
from control.tuning.decide import (
    AUTO,
    OFF,
    Promise,
    TunerSettings,
    Verdict,
    has_drifted,
    is_broken,
    verdict,
)
from control.tuning.episodes import Arrival, Episode, Names, resample
from control.twin.repack import repack
from control.twin.world import World, fork

Row = dict[str, Any]


@dataclass(frozen=True)
class Load:
    """What drift is measured on."""

    rate_wps: float  # arrivals a simulated second
    tokens: float  # mean input and output tokens a workflow
    up: int  # instances that take calls


@dataclass
class Job:
    """A run under way."""

    trigger: str
    started_s: float  # simulated s
    load: Load
    calls: int
    future: Future[tuple[Choice, float, float]]
    progress: list[float] = field(default_factory=lambda: [0.0])


@dataclass(frozen=True)
class Ended:
    """A run that ended, to be stored; and alpha to set, if any."""

    params: Row
    result: Row
    set_alpha: float | None


class Tuner:
    """State of the tuner of one live fleet. All times are simulated seconds."""

    def __init__(self, settings: TunerSettings) -> None:
        self.settings = settings
        self.job: Job | None = None
        self.promise: Promise | None = None
        self.suggested: float | None = None
        self.last_run: int | None = None
        self.last_s = 0.0  # when the last run began
        self.last_load: Load | None = None
        self.cool_until_s = 0.0
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="tuner")

    def status(self, live: Live) -> Row:
        """What is shown of the tuner."""
        return {
            "mode": live.tuning_mode,
            "pinned": live.pinned,
            "running": self.job is not None,
            "progress": None if self.job is None else self.job.progress[0],
            "last_run": self.last_run,
            "suggested_alpha": self.suggested,
            "cooldown_s": max(0.0, self.cool_until_s - live.now_s),
        }

    def trigger(self, live: Live, history: History) -> str | None:
        """Why a run is due now: the operator's button, the period, or drift; None when it is not."""
        if live.tune_wanted:
            return "button"
        if live.tuning_mode == OFF or self.job is not None:
            return None
        since_s = live.now_s - self.last_s
        if since_s >= self.settings.period_s:
            return "period"
        if since_s >= self.settings.period_s / 4.0 and self.drifted(live, history):
            return "drift"
        return None

    def drifted(self, live: Live, history: History) -> bool:
        """Whether arrivals, tokens or the fleet differ from what they were at the last run."""
        if self.last_load is None:
            return False
        then, now = self.last_load, load_of(live, history, self.settings.period_s / 4.0)
        drift = self.settings.drift
        rate, tokens = has_drifted(then.rate_wps, now.rate_wps, drift), has_drifted(then.tokens, now.tokens, drift)
        return rate or tokens or then.up != now.up

    def start(self, live: Live, history: History, trigger: str) -> str:
        """Begin a run; "" when it began, else why it cannot."""
        live.tune_wanted = False
        if self.job is not None:
            return "a run is under way"
        found = history.window(live, self.settings.window_s)
        self.last_s = live.now_s
        if found is None or not history.ended:
            return "nothing has ended yet to learn from"
        state, streams, arrivals = found
        contents = list(history.ended)
        mean_calls = sum(len(e.calls) for e in contents) / len(contents)
        calls = int(len(arrivals) * mean_calls)
        if calls < self.settings.least_calls:
            return f"{calls} calls in the window; {self.settings.least_calls} are needed"
        self.last_load = load_of(live, history, self.settings.window_s)
        progress = [0.0]
        names = Names(*live.names, int(live.world.clock[0]["n_shared"]))
        policy = live.world.policy.copy()
        run = Replay(fork(state), streams, live.declared, arrivals, contents, names, policy, self.settings.resamples)
        future = self.pool.submit(run.sweep, live.alpha, lambda share: progress.__setitem__(0, share))
        self.job = Job(trigger, live.now_s, self.last_load, calls, future, progress)
        return ""

    def poll(self, live: Live) -> Ended | None:
        """The run that has ended since the last call, with what follows from it."""
        if self.job is None or not self.job.future.done():
            return None
        job, self.job = self.job, None
        choice, wall_s, cpu_s = job.future.result()
        cooling_s = self.cool_until_s - live.now_s
        found = verdict(choice, live.tuning_mode, live.pinned, cooling_s, self.settings)
        if abs(live.alpha - choice.current) > 1e-9:
            found = Verdict("kept", "alpha was changed while the run was under way")
        self.suggested = choice.alpha if found.decision == "suggested" else None
        params = {
            "trigger": job.trigger,
            "window_s": self.settings.window_s,
            "calls": job.calls,
            "grid": [row["alpha"] for row in choice.curve],
            "resamples": self.settings.resamples,
            "policy": live.policy,
            "alpha_before": choice.current,
            "sim_s": job.started_s,
        }
        result = choice.as_dict() | {"decision": found.decision, "reason": found.reason}
        result |= {"realised_p95_s": None, "realised_until_sim_s": None, "wall_s": wall_s, "cpu_s": cpu_s}
        return Ended(params, result, choice.alpha if found.decision == "applied" else None)

    def applied(self, run_id: int, now_s: float, before: float, after: float, high_s: float) -> None:
        """A run's alpha was set: cool down, and judge it after the next window."""
        self.promise = Promise(run_id, now_s, before, after, high_s)
        self.cool_until_s = now_s + self.settings.cooldown_s
        self.suggested = None

    def judge(self, live: Live, history: History) -> tuple[Promise, float | None, bool] | None:
        """After a full window since the last change: its promise, the realised P95 (s), whether to roll back."""
        if self.promise is None or live.now_s - self.promise.made_s < self.settings.window_s:
            return None
        since = history.latencies_since(self.promise.made_s)
        overdue = live.now_s - self.promise.made_s >= 4.0 * self.settings.window_s
        if len(since) < self.settings.least_ended and not overdue:
            return None
        promise, self.promise = self.promise, None
        realised = float(np.percentile(since, 95)) if since else None
        back = is_broken(promise, realised) and live.tuning_mode == AUTO and not live.pinned
        back = back and abs(live.alpha - promise.after) < 1e-9
        if back:
            self.cool_until_s = live.now_s + self.settings.rollback_cooldown_s
        return promise, realised, back

    def close(self) -> None:
        """End without waiting for a run under way."""
        self.pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Replay:
    """History to be replayed over a grid of alpha, on forks of a past state."""

    state: World
    streams: Ints
    declared: Table
    arrivals: Sequence[Arrival]
    contents: Sequence[Episode]
    names: Names
    policy: Table
    resamples: int

    def sweep(self, current: float, progress: Callable[[float], None]) -> tuple[Choice, float, float]:
        """The choice, and the wall and CPU seconds it took."""
        wall_s, cpu_s = time.perf_counter(), time.thread_time()
        bases = [self.base(seed) for seed in range(self.resamples + CONFIRMATIONS)]
        some, fresh = bases[: self.resamples], bases[self.resamples :]
        choice = sweep(some, fresh, current, progress=progress, workers=1)
        return choice, time.perf_counter() - wall_s, time.thread_time() - cpu_s

    def base(self, seed: int) -> tuple[World, int]:
        """The past state with a resample of what arrived since, and the row of its first workflow."""
        start_s = float(self.state.clock[0]["now_s"])
        work = resample(self.arrivals, self.contents, self.names, start_s, seed)
        used = work.calls["stream"] >= 0
        work.calls["stream"][used] += int(self.streams.max(initial=-1)) + 1
        world = self.state._replace(journal=self.state.journal[:0], policy=self.policy.copy())
        world, _ = repack(world, self.streams, work, self.declared, drop_future=True)
        return world, int((world.workflows["state"] != FUTURE).sum())


def load_of(live: Live, history: History, span_s: float) -> Load:
    """The load of the last `span_s`, at most as long as the engine has run."""
    since_s = max(0.0, live.now_s - span_s)
    arrivals = live.world.workflows["arrival_s"]
    active = int(((arrivals > since_s) & (arrivals <= live.now_s)).sum())
    recent = [e for e in history.ended if e.arrival_s > since_s]
    tokens = [float(e.calls["input_tokens"].sum() + e.calls["output_tokens"].sum()) for e in recent[-200:]]
    rate = (len(recent) + active) / max(1.0, live.now_s - since_s)
    up = int((live.world.instances["state"] == 0).sum())
    return Load(rate, float(np.mean(tokens)) if tokens else 0.0, up)
