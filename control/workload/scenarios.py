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
    steps: tuple[tuple[float, float], ...] = ()  # (from s, factor on the rate), in order of time
    until_s: float = math.inf  # no workflow arrives from then on
    burst_every_s: float = math.inf  # s from one burst to the next
    burst_s: float = 0.0  # s a burst lasts
    burst_factor: float = 1.0  # factor on the rate during a burst
    tenants: tuple[str, ...] = ("analytics", "reporting")  # text-to-SQL tenants, in turn
    slo_scales: tuple[float, ...] = (1.0, 2.0)  # one for each of them
    agent_tenants: tuple[str, ...] = ("assistants",)
    form: str = "paper"  # of HexGen-Flow's dispatch score
    policy: str = "hexgen"  # in force unless another one is asked for
    text2sql: Text2SqlShape = field(default_factory=Text2SqlShape)
    agents: AgentShape = field(default_factory=AgentShape)

    def rate_at(self, t_s: Floats) -> Floats:
        """Arrival rate at `t_s` s, workflows/s."""
        rates: Floats = self.rate * (1.0 + self.swing * np.sin(2.0 * math.pi * t_s / self.period_s))
        for from_s, factor in self.steps:
            rates = np.where(t_s >= from_s, rates * factor / self._factor_before(from_s), rates)
        rates = np.where(t_s < self.until_s, rates, 0.0)
        in_burst = (self.burst_s > 0.0) & (np.mod(t_s, self.burst_every_s) >= self.burst_every_s - self.burst_s)
        return np.where(in_burst, rates * self.burst_factor, rates)

    def _factor_before(self, at_s: float) -> float:
        """Factor of the step in force just before `at_s`."""
        return next((factor for from_s, factor in reversed(self.steps) if from_s < at_s), 1.0)

    @property
    def peak(self) -> float:
        """The highest rate there can be, workflows/s."""
        highest = max([1.0, *(factor for _, factor in self.steps)])
        return self.rate * (1.0 + self.swing) * highest * max(1.0, self.burst_factor)


#: Conversations of a minute or so: tools that answer within seconds.
QUICK_AGENTS = AgentShape(turns_min=4, turns_max=8, think_median_s=1.5, think_sigma=0.8, think_most_s=20.0)

#: Coding agents as a demo watches them: a heavy first prompt, tools of seconds, now and then a person who reads.
TOOL_AGENTS = AgentShape(turns_min=4, turns_max=9, think_median_s=8.0, think_sigma=1.1, think_most_s=90.0)

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
        agents=QUICK_AGENTS,
    ),
    Scenario(
        "step-load",
        "hexgen-hetero-1",
        "Text-to-SQL whose load steps up sixfold",
        "Text-to-SQL workflows at 0.05 a second, far below what the fleet holds, and from the tenth minute on at 0.3, "
        "well above it. Dispatched by the artifact's form of the score, for which the alpha that suits the one does "
        "not suit the other.",
        rate=0.05,
        agent_share=0.0,
        steps=((600.0, 6.0),),
        form="artifact",
    ),
    Scenario(
        "diurnal",
        "demo-mixed",
        "A day of load in twenty minutes",
        "The mix of demo-mixed, its rate swinging from a fifth to nine fifths of its mean every twenty minutes.",
        rate=1.2,
        agent_share=0.15,
        swing=0.8,
        period_s=1200.0,
        agents=QUICK_AGENTS,
    ),
    Scenario(
        "burst",
        "demo-mixed",
        "Bursts over a calm load",
        "The mix of demo-mixed at half of what the fleet holds, with a minute at three times that every five minutes.",
        rate=1.2,
        agent_share=0.15,
        burst_every_s=300.0,
        burst_s=60.0,
        burst_factor=3.0,
        agents=QUICK_AGENTS,
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
        "agents",
        "conserve-a40",
        "Agents that hold conversations, prefill apart from decode",
        "Agent conversations of two tenants on one prefiller and three decoders: each is prefilled once, its KV "
        "moved to one decoder and kept there while its tools run.",
        rate=0.3,  # 70 % of the 0.42 workflows/s from which on calls are held under conserve
        agent_share=1.0,
        swing=0.2,
        policy="conserve",
        agent_tenants=("coding", "research"),
        agents=TOOL_AGENTS,
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
