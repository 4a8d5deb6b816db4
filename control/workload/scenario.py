"""What a scenario is: a mix of work without an end, what happens to its fleet by itself, and a story told beside it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from control.workload.agents import AgentShape
from control.workload.table import Floats
from control.workload.text2sql import Text2SqlShape


@dataclass(frozen=True)
class Act:
    """Something that happens by itself: a command that the engine obeys at a simulated time."""

    at_s: float  # simulated s, above 0
    kind: str  # of the command, see storage.commands
    payload: Mapping[str, Any]
    words: str  # what happens, for those who watch


@dataclass(frozen=True)
class Step:
    """A part of the story: where to look, and what to do there."""

    title: str
    text: str  # a sentence or two
    page: str  # file of the page to open, such as "power"
    from_s: float = 0.0  # simulated s from which on it is the current one


@dataclass(frozen=True)
class Scenario:
    """A mix of workflows that arrive for ever on one fleet."""

    name: str
    fleet: str  # built-in fleet it is made for
    title: str
    text: str = field(repr=False)
    rate: float  # workflows/s, mean over a period
    agent_share: float  # share of workflows that are agent conversations
    story: tuple[Step, Step, Step] = field(repr=False)
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
    ampd_error: float = 0.1  # share of later turns that AMPD sends to the wrong tier
    text2sql: Text2SqlShape = field(default_factory=Text2SqlShape)
    agents: AgentShape = field(default_factory=AgentShape)
    script: tuple[Act, ...] = field(default=(), repr=False)  # in order of time
    length_s: float = 600.0  # simulated s after which the story is told

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

    def step_at(self, now_s: float) -> int:
        """Number of the story's current step at a simulated time, from 0."""
        return max((k for k, step in enumerate(self.story) if step.from_s <= now_s), default=0)


#: Conversations of a minute or so: tools that answer within seconds.
QUICK_AGENTS = AgentShape(turns_min=4, turns_max=8, think_median_s=1.5, think_sigma=0.8, think_most_s=20.0)

#: Coding agents as a demo watches them: a heavy first prompt, tools of seconds, now and then a person who reads.
TOOL_AGENTS = AgentShape(turns_min=4, turns_max=9, think_median_s=8.0, think_sigma=1.1, think_most_s=90.0)
