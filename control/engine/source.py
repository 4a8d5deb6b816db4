"""Where live work comes from: a scenario without an end, a trace replayed once, a minute at a time, or requests."""

import zlib
from dataclasses import dataclass
from functools import cached_property

from control.model.workload import Workload
from control.policy.rules import USUAL, Conversations
from control.workload.build import part
from control.workload.scenario import Act, Scenario
from control.workload.scenarios import window
from control.workload.windows import WINDOW_S, window_count, windowed


@dataclass(frozen=True)
class Source:
    """Arrivals by windows of WINDOW_S simulated seconds, the same for the same seed."""

    name: str
    seed: int
    scenario: Scenario | None = None
    trace: Workload | None = None  # arranged
    is_gateway: bool = False  # neither: requests come in over HTTP
    first_id: int = 0  # added to the numbers of workflows: a store that holds an earlier run has none of them twice

    def window(self, index: int, load_scale: float) -> Workload:
        """The workflows that arrive in window `index`; load_scale thins or thickens a scenario.

        A scenario numbers the streams of each window from 0, a trace those of all its windows together.
        """
        if self.scenario is None:
            assert self.trace is not None
            return self._numbered(windowed(self.trace, index))
        return self._numbered(window(self.scenario, self.seed, index, load_scale))

    def _numbered(self, work: Workload) -> Workload:
        if self.first_id == 0:
            return work
        workflows = work.workflows.copy()
        workflows["id"] += self.first_id
        return work._replace(workflows=workflows)

    @property
    def form(self) -> str:
        """The form of the dispatch score that the scenario asks for."""
        return "paper" if self.scenario is None else self.scenario.form

    @property
    def conversations(self) -> Conversations:
        """The settings of conversation policies that the scenario begins with."""
        return USUAL if self.scenario is None else Conversations(error=self.scenario.ampd_error)

    @property
    def script(self) -> tuple[Act, ...]:
        """What happens by itself, in order of time."""
        return () if self.scenario is None else self.scenario.script

    @cached_property
    def digest(self) -> int:
        """A number that differs where the arrivals do."""
        if self.is_gateway:
            return 0
        if self.trace is None:
            return zlib.crc32(repr(self.scenario).encode())
        return zlib.crc32(self.trace.calls.tobytes(), zlib.crc32(self.trace.workflows.tobytes()))

    def is_over(self, index: int) -> bool:
        """Whether no window from `index` on holds any work."""
        if self.is_gateway:
            return True
        if self.scenario is not None:
            return self.window_start_s(index) >= self.scenario.until_s
        return self.trace is not None and index >= window_count(self.trace)

    def window_start_s(self, index: int) -> float:
        """When window `index` begins, simulated s."""
        return index * WINDOW_S


def after(work: Workload, time_s: float) -> Workload:
    """The workflows of `work` that arrive later than `time_s`."""
    first = int((work.workflows["arrival_s"] <= time_s).sum())
    return part(work, first, len(work.workflows))
