"""Tune alpha on a trace, away from any live fleet."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from control.errors import SettingError
from control.model.fleet import Fleet
from control.model.workload import Workload
from control.policy.codes import HEXGEN, POLICIES
from control.policy.tables import Floats
from control.tuning.alpha import CONFIRMATIONS, GRID, RESAMPLES, sweep
from control.tuning.episodes import Episode, Names, episodes_of, resample
from control.twin.pack import build_world
from control.twin.world import World

LEAST_CALLS = 200  # a shorter window says nothing
TUNABLE = tuple(name for name, codes in POLICIES.items() if codes.dispatch == HEXGEN)


def tune(
    workload: Workload,
    fleet: Fleet,
    policy: str = "hexgen",
    current: float = 0.5,
    grid: Sequence[float] = GRID,
    resamples: int = RESAMPLES,
    window_s: float = 600.0,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:
    """The curve of P95 over alpha for the last `window_s` of an arranged workload (never fewer than LEAST_CALLS calls).

    Each resample starts on an idle fleet. Returns the choice with cpu_s and wall_s.

    Raises:
        SettingError: an empty workload, resamples below 1, or a bad window, grid, policy or alpha.
    """
    check_settings(policy, resamples, window_s)
    if len(workload.workflows) == 0:
        raise SettingError("the trace holds no workflow to tune on")
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    slos_s: Floats = build_world(workload, fleet, policy, current).workflows["slo_s"]
    episodes = last_window(episodes_of(workload, slos_s), window_s)
    names = Names(workload.kinds, workload.tenants, workload.steps, workload.n_shared)
    start_s = episodes[0].arrival_s
    bases: list[tuple[World, int]] = []
    for k in range(resamples + CONFIRMATIONS):
        work = resample(episodes, episodes, names, start_s, seed * 1_000_003 + k)
        bases.append((build_world(work, fleet, policy, current), 0))
    choice = sweep(bases[:resamples], bases[resamples:], current, grid, progress)
    took = {"cpu_s": time.process_time() - cpu_s, "wall_s": time.perf_counter() - wall_s}
    n_calls = sum(len(e.calls) for e in episodes)
    notes = [] if n_calls >= LEAST_CALLS else [f"{n_calls} calls in all: under {LEAST_CALLS} say little"]
    head: dict[str, Any] = {
        "problems": notes,
        "policy": policy,
        "fleet": fleet.name,
        "window_calls": n_calls,
        "resamples": resamples,
        "seed": seed,
    }
    return {**head, **choice.as_dict(), **took}


def check_settings(policy: str, resamples: int, window_s: float) -> None:
    """Refuse what cannot be tuned.

    Raises:
        SettingError: a policy without alpha, resamples outside 1 to 1,000, a window that is not above 0.
    """
    if not 1 <= resamples <= 1000:
        raise SettingError(f"resamples = {resamples}: expected a whole number from 1 to 1000")
    if policy not in TUNABLE:
        raise SettingError(f"policy = {policy!r}: its dispatch uses no alpha: expected one of {', '.join(TUNABLE)}")
    if not window_s > 0.0:
        raise SettingError(f"window = {window_s:g}: expected a number of seconds > 0")


def last_window(episodes: Sequence[Episode], window_s: float) -> list[Episode]:
    """The episodes of the last `window_s` seconds, and earlier ones until there are LEAST_CALLS calls."""
    first = len(episodes)
    end_s, calls = episodes[-1].arrival_s, 0
    while first > 0 and (episodes[first - 1].arrival_s > end_s - window_s or calls < LEAST_CALLS):
        first -= 1
        calls += len(episodes[first].calls)
    return list(episodes[first:])
