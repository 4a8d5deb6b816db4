"""How fast alpha is tuned, and whether the loop feels it."""

import time
from typing import Any

import numpy as np

from control.config import EngineSettings
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import start
from control.model.fleet import load_fleet
from control.policy.tables import Floats
from control.tuning.decide import OFF
from control.tuning.offline import tune
from control.workload.build import merge
from control.workload.scenarios import scenario, window
from storage.open import Store

SCENARIO = "demo-mixed"
MINUTES = 10  # of arrivals that alpha is tuned on
STRETCH_S = 20.0  # simulated s a tick while history builds up
TURN = 50  # ticks before the tuner's turn comes or ends: what else the machine does falls on both alike
TICK_S = 0.1  # wall and simulated s a tick while ticks are timed


def measure_tuning(store: Store, runs: int, ticks: int) -> dict[str, Any]:
    """Wall and CPU seconds of tuning on MINUTES of SCENARIO, and the ticks of a live loop without and with the tuner.

    Tuning: the median of `runs` (2 at least: the first one loads). Ticks: `ticks` of each kind, in ms. The lease of
    `store` must be held.
    """
    plan = scenario(SCENARIO)
    work = merge([window(plan, 0, minute) for minute in range(MINUTES)], plan.name, one_prompt_set=True)
    results = [tune(work, load_fleet(plan.fleet)) for _ in range(runs + 1)][1:]
    quiet_ms, busy_ms, tuned = timed_ticks(store, ticks)
    return {
        "calls": results[0]["window_calls"],
        "alphas": len(results[0]["curve"]),
        "resamples": results[0]["resamples"],
        "wall_s": float(np.median([result["wall_s"] for result in results])),
        "cpu_s": float(np.median([result["cpu_s"] for result in results])),
        "ticks": ticks,
        "tuning_runs": tuned,
        "tick_ms": spread_ms(quiet_ms),
        "tick_while_tuning_ms": spread_ms(busy_ms),
    }


def timed_ticks(store: Store, ticks: int) -> tuple[Floats, Floats, int]:
    """Durations (ms) of `ticks` ticks without tuning and of as many with one run after the other; number of runs."""
    plan = scenario(SCENARIO)
    live = start(load_fleet(plan.fleet), Source(plan.name, 0, scenario=plan), "hexgen", 0.5, 1.0)
    live.tuning_mode = OFF
    loop = Loop(live, store, EngineSettings(), "bench", lambda: False)
    while live.now_s < 60.0 * MINUTES + STRETCH_S:
        loop.tick(STRETCH_S)
        loop.record()
    durations: list[list[float]] = [[], []]
    began = 0
    for k in range(2 * ticks):
        is_tuning = k % (2 * TURN) >= TURN
        if is_tuning and loop.tuner.job is None:
            live.tune_wanted = True
            began += 1
        begun_s = time.perf_counter()
        loop.tick(TICK_S)
        durations[is_tuning].append(1e3 * (time.perf_counter() - begun_s))
        if k % round(1.0 / TICK_S) == 0:
            loop.record()
        time.sleep(max(0.0, TICK_S - (time.perf_counter() - begun_s)))
        if k % (2 * TURN) == 2 * TURN - 1:
            loop.tuner.wait()
    loop.tuner.close()
    return np.array(durations[0]), np.array(durations[1]), began


def spread_ms(durations_ms: Floats) -> dict[str, float]:
    """Median, P99 and most of some durations."""
    return {
        "median": float(np.median(durations_ms)),
        "p99": float(np.percentile(durations_ms, 99)),
        "most": float(durations_ms.max()),
    }
