"""Named mixes of work without an end, for the live engine: any minute of them at once, by its number."""

import math
from dataclasses import dataclass, field

import numpy as np

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.agents import AgentShape, agents
from control.workload.arrivals import generator
from control.workload.build import chosen, dense_streams, merge
from control.workload.table import Floats
from control.workload.text2sql import Text2SqlShape, text2sql
from control.workload.windows import WINDOW_S

#: Ids of a window start at its number times this; those of a layer of load at a tenth of it each.
WINDOW_IDS = 100_000
_LAYER_IDS = 10_000
_MOST_LOAD = WINDOW_IDS // _LAYER_IDS

_TIMES, _TEXT2SQL, _AGENTS, _DRAWS = range(4)


@dataclass(frozen=True)
class Scenario:
    """A mix of workflows that arrive for ever on one fleet."""

    name: str
    fleet: str  # built-in fleet it is made for
    title: str
    text: str
    rate: float  # workflows/s, mean over a period
    agent_share: float  # share of workflows that are agent conversations
    swing: float = 0.0  # the rate varies by this share up and down
    period_s: float = 1800.0  # s from one crest of the rate to the next
    tenants: tuple[str, ...] = ("analytics", "reporting")  # text-to-SQL tenants, in turn
    slo_scales: tuple[float, ...] = (1.0, 2.0)  # one for each of them
    agent_tenant: str = "assistants"
    text2sql: Text2SqlShape = field(default_factory=Text2SqlShape)
    agents: AgentShape = field(default_factory=AgentShape)

    def rate_at(self, t_s: Floats) -> Floats:
        """Arrival rate at `t_s` s, workflows/s."""
        rates: Floats = self.rate * (1.0 + self.swing * np.sin(2.0 * math.pi * t_s / self.period_s))
        return rates


_SCENARIOS = (
    Scenario(
        "demo-mixed",
        "demo-mixed",
        "Text-to-SQL of two tenants, with agents beside it",
        "Two tenants ask text-to-SQL questions, one with twice the time of the other, while some agents "
        "hold conversations with quick tools between their turns. The rate swings slowly by a fifth.",
        rate=1.65,  # 70 % of the 2.35 workflows/s at which the fleet saturates under hexgen
        agent_share=0.15,
        swing=0.2,
        agents=AgentShape(turns_min=4, turns_max=8, think_median_s=1.5, think_sigma=0.8, think_most_s=20.0),
    ),
    Scenario(
        "text2sql-tenants",
        "hexgen-hetero-1",
        "Text-to-SQL of two tenants on four large GPUs",
        "Only text-to-SQL workflows, half of them with twice the time, at a rate the fleet can just hold.",
        rate=0.12,
        agent_share=0.0,
    ),
    Scenario(
        "agents-a40",
        "conserve-a40",
        "Agent conversations on four A40",
        "Only agent conversations: a heavy first prompt, then light turns with thinking time between them.",
        rate=1.0,
        agent_share=1.0,
    ),
)


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
    peak = scenario.rate * (1.0 + scenario.swing)
    kept = marks[:, 0] * peak < scenario.rate_at(times) * share
    mixed = _mixed(scenario, seed, index, layer, times, marks[:, 1] < scenario.agent_share)
    draws = generator(seed, index, layer, _DRAWS).random((len(mixed.calls), 2))
    mixed.calls["draw_a"], mixed.calls["draw_b"] = draws[:, 0], draws[:, 1]
    return chosen(mixed, kept)


def _candidates(scenario: Scenario, seed: int, index: int, layer: int) -> tuple[Floats, Floats]:
    """Arrival times at the peak rate, s, sorted, and two uniform marks for each."""
    rng = generator(seed, index, layer, _TIMES)
    n = int(rng.poisson(scenario.rate * (1.0 + scenario.swing) * WINDOW_S))
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
        tenants=(scenario.agent_tenant,),
        shape=scenario.agents,
        stream=(index, layer, _AGENTS),
    )
    ids = WINDOW_IDS * index + _LAYER_IDS * layer + np.arange(len(times))
    for part, own in ((queries, ~is_agent), (talks, is_agent)):
        part.workflows["arrival_s"] = times[own]
        part.workflows["id"] = ids[own]
    return merge([queries, talks], scenario.name)._replace(format="scenario")
