"""Where live work comes from: a scenario without an end, or a trace replayed once, a minute at a time."""

from dataclasses import dataclass

from control.model.workload import Workload
from control.workload.build import part
from control.workload.scenarios import Scenario, window
from control.workload.windows import WINDOW_S, window_count, windowed


@dataclass(frozen=True)
class Source:
    """Arrivals by windows of WINDOW_S simulated seconds, the same for the same seed."""

    name: str
    seed: int
    scenario: Scenario | None = None
    trace: Workload | None = None  # arranged

    def window(self, index: int, load_scale: float) -> Workload:
        """The workflows that arrive in window `index`; load_scale thins or thickens a scenario.

        The streams of a scenario's window get numbers that no other window uses.
        """
        if self.scenario is None:
            assert self.trace is not None
            return windowed(self.trace, index)
        work = window(self.scenario, self.seed, index, load_scale)
        work.calls["stream"][work.calls["stream"] >= 0] += index * 100_000
        return work

    def is_over(self, index: int) -> bool:
        """Whether no window from `index` on holds any work."""
        return self.trace is not None and index >= window_count(self.trace)

    def window_start_s(self, index: int) -> float:
        """When window `index` begins, simulated s."""
        return index * WINDOW_S


def after(work: Workload, time_s: float) -> Workload:
    """The workflows of `work` that arrive later than `time_s`."""
    first = int((work.workflows["arrival_s"] <= time_s).sum())
    return part(work, first, len(work.workflows))
