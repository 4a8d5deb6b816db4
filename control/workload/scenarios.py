"""Named mixes of work without an end, for the live engine: any minute of them at once, by its number."""

import math

import numpy as np

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.agents import agents
from control.workload.arrivals import generator
from control.workload.build import chosen, dense_streams, merge
from control.workload.demos.faults import FAULTS
from control.workload.demos.loads import LOADS
from control.workload.demos.papers import PAPERS
from control.workload.scenario import Scenario
from control.workload.table import Floats
from control.workload.text2sql import text2sql
from control.workload.windows import WINDOW_S

#: Ids of a window start at its number times this; those of a layer of load at a tenth of it each.
WINDOW_IDS = 100_000
_LAYER_IDS = 10_000
_MOST_LOAD = WINDOW_IDS // _LAYER_IDS

_TIMES, _TEXT2SQL, _AGENTS, _DRAWS = range(4)


_SCENARIOS = (*LOADS[:1], *FAULTS, *PAPERS[:2], *LOADS[1:], *PAPERS[2:])


def scenarios() -> tuple[Scenario, ...]:
    """All of them, in the order in which they are offered."""
    return _SCENARIOS


def scenario_names() -> tuple[str, ...]:
    """Names that `scenario` knows."""
    return tuple(known.name for known in _SCENARIOS)


def scenario(name: str) -> Scenario:
    """The scenario of that name. Raises SettingError."""
    for known in _SCENARIOS:
        if known.name == name:
            return known
    raise SettingError(f"scenario = {name!r}: expected one of {', '.join(scenario_names())}")


def window(scenario: Scenario, seed: int, index: int, load_scale: float = 1.0) -> Workload:
    """The workflows that arrive in [60 index, 60 (index + 1)) s, ready to run.

    The same for the same (scenario, seed, index). Raising load_scale only adds workflows and lowering it
    only takes some away; ids, shared keys and contents stay. Streams are numbered from 0 in the window.
    Raises SettingError: index below 0, load_scale outside [0, 10], more than 10,000 arrivals per layer.
    """
    if index < 0:
        raise SettingError(f"window = {index}: expected a whole number >= 0")
    if not 0.0 <= load_scale <= _MOST_LOAD:
        raise SettingError(f"load_scale = {load_scale}: expected a number from 0 to {_MOST_LOAD}")
    layers = max(1, math.ceil(load_scale))
    parts = [_layer(scenario, seed, index, layer, min(1.0, load_scale - layer)) for layer in range(layers)]
    return dense_streams(merge(parts, scenario.name, one_prompt_set=True))


def _layer(scenario: Scenario, seed: int, index: int, layer: int, share: float) -> Workload:
    """One layer of load: `share` of a Poisson process at the scenario's rate, by thinning."""
    times, marks = _candidates(scenario, seed, index, layer)
    kept = marks[:, 0] * scenario.peak < scenario.rate_at(times) * share
    mixed = _mixed(scenario, seed, index, layer, times, marks[:, 1] < scenario.agent_share)
    draws = generator(seed, index, layer, _DRAWS).random((len(mixed.calls), 2))
    mixed.calls["draw_a"], mixed.calls["draw_b"] = draws[:, 0], draws[:, 1]
    return chosen(mixed, kept)


def _candidates(scenario: Scenario, seed: int, index: int, layer: int) -> tuple[Floats, Floats]:
    """Arrival times at the peak rate, s, sorted, and two uniform marks for each."""
    rng = generator(seed, index, layer, _TIMES)
    n = int(rng.poisson(scenario.peak * WINDOW_S))
    if n > _LAYER_IDS:
        most = _LAYER_IDS / WINDOW_S
        raise SettingError(f"rate = {scenario.rate}: expected a peak well below {most:.0f} workflows/s")
    times = np.sort(rng.random(n)) * WINDOW_S + WINDOW_S * index
    return times, rng.random((n, 2))


def _mixed(
    scenario: Scenario,
    seed: int,
    index: int,
    layer: int,
    times: Floats,
    is_agent: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Workload:
    """All candidates as workflows in order of arrival."""
    n_agents = int(is_agent.sum())
    queries = text2sql(
        len(times) - n_agents,
        seed,
        tenants=scenario.tenants,
        slo_scales=scenario.slo_scales,
        shape=scenario.text2sql,
        stream=(index, layer, _TEXT2SQL),
    )
    talks = agents(
        n_agents,
        seed,
        tenants=scenario.agent_tenants,
        slo_scales=(1.0,) * len(scenario.agent_tenants),
        shape=scenario.agents,
        stream=(index, layer, _AGENTS),
    )
    ids = WINDOW_IDS * index + _LAYER_IDS * layer + np.arange(len(times))
    for part, own in ((queries, ~is_agent), (talks, is_agent)):
        part.workflows["arrival_s"] = times[own]
        part.workflows["id"] = ids[own]
    return merge([queries, talks], scenario.name)._replace(format="scenario")
