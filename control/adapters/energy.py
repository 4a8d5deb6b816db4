"""Energy of one GPU since the first look, in J: its counter's difference, or the integral of its power."""

from dataclasses import dataclass


@dataclass
class EnergyMeter:
    """Adds up energy between looks; never goes back, also when the counter starts again with the driver."""

    total_j: float | None = None  # None: neither a counter nor power was ever seen
    at_s: float | None = None  # monotonic time of the look before
    power_w: float | None = None
    counter_j: float | None = None

    def update(self, now_s: float, power_w: float | None, counter_j: float | None) -> float | None:
        """Energy in J up to `now_s`; None where it has never been told.

        Args:
            now_s: monotonic time.
            power_w: power now, if known.
            counter_j: the GPU's own counter, if it has one.
        """
        if power_w is not None or counter_j is not None:
            self.total_j = (self.total_j or 0.0) + self.step_j(now_s, power_w, counter_j)
        self.at_s, self.power_w, self.counter_j = now_s, power_w, counter_j
        return self.total_j

    def step_j(self, now_s: float, power_w: float | None, counter_j: float | None) -> float:
        """Energy since the look before."""
        if counter_j is not None and self.counter_j is not None:
            return counter_j - self.counter_j if counter_j >= self.counter_j else counter_j
        if power_w is None or self.power_w is None or self.at_s is None:
            return 0.0
        return (power_w + self.power_w) / 2 * (now_s - self.at_s)
