"""A clock that a test moves by hand."""

import heapq
from collections.abc import Callable


class Alarm:
    """One scheduled call."""

    def __init__(self, what: Callable[[], None]) -> None:
        self.what: Callable[[], None] | None = what

    def cancel(self) -> None:
        """Have it not happen."""
        self.what = None


class FakeClock:
    """Time stands still but in `run_until`; whatever is due happens exactly then."""

    def __init__(self) -> None:
        self.time_s = 100.0
        self.alarms: list[tuple[float, int, Alarm]] = []
        self.n = 0

    def now(self) -> float:
        """Time, s."""
        return self.time_s

    def call_at(self, at_s: float, what: Callable[[], None]) -> Alarm:
        """As Clock.call_at."""
        self.n += 1
        alarm = Alarm(what)
        heapq.heappush(self.alarms, (max(at_s, self.time_s), self.n, alarm))
        return alarm

    def run_until(self, until_s: float) -> None:
        """Let everything happen that is due by `until_s`."""
        while self.alarms and self.alarms[0][0] <= until_s:
            self.time_s, _, alarm = heapq.heappop(self.alarms)
            if alarm.what is not None:
                alarm.what()
        self.time_s = until_s

    def run_out(self) -> None:
        """Let everything happen that is due at any time."""
        while self.alarms:
            self.run_until(self.alarms[0][0])
