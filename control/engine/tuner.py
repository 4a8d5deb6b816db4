"""The live tuner: when to run, the run beside the loop, what follows from it, and whether it kept its promise.

A run works on forks of past states on another thread, without the GIL; the loop only asks whether it has ended.
"""

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from control.engine.history import History, Recorded
from control.engine.state import Live
from control.policy.codes import ACTIVE, UP
from control.tuning.decide import (
    AUTO,
    OFF,
    Judged,
    Load,
    Promise,
    TunerSettings,
    Verdict,
    has_drifted,
    is_broken,
    verdict,
)
from control.tuning.episodes import Names
from control.tuning.imagine import imagined
from control.tuning.offline import TUNABLE
from control.tuning.replay import Found, Past, Review
from control.twin.caps import at_cost
from control.twin.world import World, fork

Row = dict[str, Any]


@dataclass
class Job:
    """A run under way."""

    trigger: str
    started_s: float  # simulated s
    span_s: float  # replayed, simulated s
    calls: int
    future: Future[Found]
    progress: list[float] = field(default_factory=lambda: [0.0])


class Trial(NamedTuple):
    """A broken promise under review: how would the alpha before have done?"""

    promise: Promise
    realised_p95_s: float
    future: Future[Review] | None  # None: nothing is kept to replay


@dataclass(frozen=True)
class Ended:
    """A run that ended, to be stored; and alpha to set, if any."""

    params: Row
    result: Row
    found: Found
    set_alpha: float | None


class Tuner:
    """State of the tuner of one live fleet."""

    def __init__(self, settings: TunerSettings) -> None:
        self.settings = settings
        self.job: Job | None = None
        self.trial: Trial | None = None
        self.stopping = False
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="tuner")

    def status(self, live: Live) -> Row:
        """What is shown of the tuner."""
        return {
            "mode": live.tuning_mode,
            "pinned": live.pinned,
            "running": self.job is not None,
            "progress": None if self.job is None else self.job.progress[0],
            "last_run": live.tuner.last_run,
            "suggested_alpha": live.tuner.suggested,
            "cooldown_s": self.cooling_s(live),
        }

    def cooling_s(self, live: Live) -> float:
        """Simulated s until alpha may be changed again."""
        return max(0.0, live.tuner.cool_until_s - live.now_s)

    def trigger(self, live: Live, history: History) -> str | None:
        """Why a run is due now: the operator's button, the period, or drift; None when it is not."""
        if live.tune_wanted:
            return "button"
        idle = live.tuning_mode == OFF or self.job is not None
        if idle or (live.tuning_mode == AUTO and self.cooling_s(live) > 0.0):
            return None
        since_s = live.now_s - live.tuner.last_s
        if since_s >= self.settings.period_s:
            return "period"
        if since_s >= self.settings.period_s / 4.0 and self.drifted(live, history):
            return "drift"
        return None

    def drifted(self, live: Live, history: History) -> bool:
        """Whether arrivals, tokens or the fleet differ from what they were at the last run."""
        then = live.tuner.last_load
        return then is not None and has_drifted(
            then, load_of(live, history, self.settings.period_s / 4.0), self.settings.drift
        )

    def start(self, live: Live, history: History, trigger: str) -> str:
        """Begin a run; "" when it began, else why it cannot."""
        live.tune_wanted = False
        if self.job is not None:
            return "a run is under way"
        settings = self.settings
        live.tuner.last_s = live.now_s
        if live.policy not in TUNABLE:
            return f"{live.policy} uses no alpha"
        recorded = history.window(live, settings.window_s, settings.least_calls)
        if recorded is None or not history.ended:
            return "nothing has ended yet to learn from"
        calls = history.calls(recorded)
        if calls < settings.least_calls:
            return f"{calls} calls on record; {settings.least_calls} are needed"
        active = int((live.world.workflows["state"] == ACTIVE).sum())
        if active > settings.most_active:
            return f"{active:,} workflows are active: a backlog beyond {settings.most_active:,} is not replayed"
        live.tuner.last_load = load_of(live, history, settings.window_s)
        progress = [0.0]

        def tell(share: float) -> None:
            """Note how far the run is; end it where the engine ends."""
            progress[0] = share
            if self.stopping:
                raise CancelledError

        past = past_of(live, history, recorded)
        future = self.pool.submit(past.sweep, live.alpha, settings.resamples, tell)
        span_s = live.now_s - float(recorded.state.clock[0]["now_s"])
        self.job = Job(trigger, live.now_s, span_s, calls, future, progress)
        return ""

    def poll(self, live: Live) -> Ended | None:
        """The run that has ended since the last call, with what follows from it."""
        if self.job is None or not self.job.future.done():
            return None
        job, self.job = self.job, None
        found = job.future.result()
        choice = found.choice
        ruled = verdict(choice, live.tuning_mode, live.pinned, self.cooling_s(live), self.settings)
        took_s = live.now_s - job.started_s
        if abs(live.alpha - choice.current) > 1e-9:
            ruled = Verdict("kept", "alpha was changed while the run was under way")
        elif took_s > self.settings.window_s:
            ruled = Verdict("kept", f"the run took {took_s:.0f} s on the engine's clock: the load has moved on")
        live.tuner.suggested = choice.alpha if ruled.decision == "suggested" else None
        params = {
            "trigger": job.trigger,
            "window_s": job.span_s,
            "calls": job.calls,
            "grid": [row["alpha"] for row in choice.curve],
            "resamples": self.settings.resamples,
            "policy": live.policy,
            "alpha_before": choice.current,
            "sim_s": job.started_s,
        }
        result = choice.as_dict() | {"decision": ruled.decision, "reason": ruled.reason}
        result |= {"realised_p95_s": None, "realised_until_sim_s": None, "wall_s": found.wall_s, "cpu_s": found.cpu_s}
        return Ended(params, result, found, choice.alpha if ruled.decision == "applied" else None)

    def applied(self, live: Live, history: History, run_id: int, after: float, high_s: float) -> None:
        """A run's alpha was set: cool down, and judge it after the next window."""
        live.tuner.promise = Promise(run_id, live.now_s, live.alpha, after, high_s)
        live.tuner.cool_until_s = live.now_s + self.settings.cooldown_s
        live.tuner.suggested = None
        history.hold()

    def judge(self, live: Live, history: History) -> Judged | None:
        """A change whose window is over, and what came of it.

        One that broke its promise is rolled back, unless what really came, replayed, would have gone no better under
        the alpha before: then it was the load that grew.
        """
        if self.trial is not None:
            return self.sentence(live)
        if live.tuner.promise is None or live.now_s - live.tuner.promise.made_s < self.settings.window_s:
            return None
        since = history.latencies_since(live.tuner.promise.made_s)
        overdue = live.now_s - live.tuner.promise.made_s >= 4.0 * self.settings.window_s
        if len(since) < self.settings.least_ended and not overdue:
            return None
        promise = live.tuner.promise
        realised = float(np.percentile(since, 95)) if since else None
        if realised is None or not is_broken(promise, realised):
            live.tuner.promise = None
            return Judged(promise, realised, None, roll_back=False)
        recorded = history.after(live, promise.made_s)
        future = None
        if recorded is not None and recorded.arrivals and history.ended:
            future = self.pool.submit(past_of(live, history, recorded).review, promise.after, promise.before)
        self.trial = Trial(promise, realised, future)
        return self.sentence(live)

    def sentence(self, live: Live) -> Judged | None:
        """The outcome of the review, once it has ended."""
        assert self.trial is not None
        promise, realised_s, future = self.trial
        if future is not None and not future.done():
            return None
        self.trial = live.tuner.promise = None
        review = None if future is None else future.result()
        may = live.tuning_mode == AUTO and not live.pinned and abs(live.alpha - promise.after) < 1e-9
        back = may and (review is None or review.gain <= 0.0)
        if back:
            live.tuner.cool_until_s = live.now_s + self.settings.rollback_cooldown_s
        return Judged(promise, realised_s, review, back)

    def wait(self) -> None:
        """Until nothing is under way; what came of it is for the next `poll` and `judge` to tell."""
        for under_way in (self.job, self.trial):
            if under_way is not None and under_way.future is not None:
                under_way.future.exception()

    def close(self) -> None:
        """Have a run under way end after the replay it is at."""
        self.stopping = True
        self.pool.shutdown(wait=False, cancel_futures=True)


def at_live_cost(live: Live, state: World) -> World:
    """A copy of a past state at the costs in force: what is replayed is asked of the fleet as it is capped now."""
    copy = imagined(fork(state))
    return copy if state.costs is live.world.costs else at_cost(copy, live.world.costs, live.world.instances["profile"])


def past_of(live: Live, history: History, recorded: Recorded) -> Past:
    """A record as something to replay, apart from the live tables."""
    kinds, tenants, steps = (tuple(part) for part in live.names)
    return Past(
        state=at_live_cost(live, recorded.state),
        streams=recorded.streams,
        declared=live.declared,
        arrivals=recorded.arrivals,
        contents=list(history.ended),
        names=Names(kinds, tenants, steps, int(live.world.clock[0]["n_shared"])),
        instances=[spec.name for spec in live.fleet.instances],
        policy=live.world.policy.copy(),
    )


def load_of(live: Live, history: History, span_s: float) -> Load:
    """The load of the last `span_s`, at most as long as the engine has run."""
    since_s = max(0.0, live.now_s - span_s)
    arrivals = live.world.workflows["arrival_s"]
    active = int(((arrivals > since_s) & (arrivals <= live.now_s) & (live.world.workflows["state"] == ACTIVE)).sum())
    recent = [e for e in history.ended if e.arrival_s > since_s]
    sizes = [float(e.calls["input_tokens"].sum() + e.calls["output_tokens"].sum()) for e in list(history.ended)[-200:]]
    tokens, sd = (float(np.mean(sizes)), float(np.std(sizes)) / len(sizes) ** 0.5) if sizes else (0.0, 0.0)
    arrived = len(recent) + active
    up = int((live.world.instances["state"] == UP).sum())
    return Load(arrived, arrived / max(1.0, live.now_s - since_s), tokens, sd, up)
