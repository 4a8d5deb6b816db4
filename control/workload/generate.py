"""Finite generated workloads by name: a generator or a scenario."""

import math
from dataclasses import replace

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.agents import CODING, agents
from control.workload.arrivals import arrange
from control.workload.build import dense_streams, merge, part
from control.workload.scenarios import scenario, scenario_names, window
from control.workload.text2sql import text2sql
from control.workload.windows import WINDOW_S

#: Two weeks of minutes: a slower rate than fills them is a slip.
_MOST_WINDOWS = 20_000

_GENERATORS = ("text2sql", "agents", "coding-agents")


def generator_names() -> tuple[str, ...]:
    """Names that `generate` knows."""
    return (*_GENERATORS, *scenario_names())


def generate(name: str, n: int, seed: int, rate: float | None = None) -> Workload:
    """`n` workflows of a generator (Poisson at `rate`, 0.1 workflows/s without) or of a scenario's start.

    A scenario's `rate` replaces its mean rate. Raises SettingError.
    """
    if n < 1:
        raise SettingError(f"n = {n}: expected a whole number >= 1")
    if name == "text2sql":
        return arrange(text2sql(n, seed), rate=rate, seed=seed)
    if name in ("agents", "coding-agents"):
        return arrange(_talks(name, n, seed), rate=rate, seed=seed)
    if name in scenario_names():
        return scenario_start(name, n, seed, rate)
    raise SettingError(f"workload = {name!r}: expected one of {', '.join(generator_names())}")


def _talks(name: str, n: int, seed: int) -> Workload:
    return agents(n, seed, shape=CODING) if name == "coding-agents" else agents(n, seed)


def scenario_start(name: str, n: int, seed: int, rate: float | None = None) -> Workload:
    """The first `n` workflows of a scenario. Raises SettingError."""
    known = scenario(name)
    if rate is not None:
        known = replace(known, rate=rate)
    least = n / (WINDOW_S * _MOST_WINDOWS)
    if not least <= known.rate < math.inf:
        raise SettingError(f"rate = {rate}: expected a finite number >= {least:.2g} for {n} workflows")
    parts: list[Workload] = []
    found = 0
    while found < n:
        parts.append(window(known, seed, len(parts)))
        found += len(parts[-1].workflows)
    return dense_streams(part(merge(parts, known.name, one_prompt_set=True), 0, n))
