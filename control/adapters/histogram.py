"""Cumulative histograms as Prometheus texts carry them: mean, quantiles, and what came since an earlier one."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Histogram:
    """Times of finished requests or tokens, in seconds."""

    count: float
    sum_s: float | None  # None: the source gives buckets only
    buckets: tuple[tuple[float, float], ...] = ()  # (upper bound in s, cumulative count), bounds ascending, last +inf

    def mean_s(self) -> float | None:
        """Mean in seconds; None where nothing was counted."""
        return None if self.sum_s is None or self.count <= 0 else self.sum_s / self.count

    def quantile_s(self, q: float) -> float | None:
        """The q-quantile in seconds, linear within a bucket; None where nothing was counted.

        In the last, open bucket it is the largest finite bound, as in Prometheus' histogram_quantile: a lower bound.
        """
        total = self.buckets[-1][1] if self.buckets else 0.0
        if total <= 0:
            return None
        rank, low, below = q * total, 0.0, 0.0
        for bound, cumulative in self.buckets:
            if cumulative >= rank and cumulative > below:
                share = (rank - below) / (cumulative - below)
                return low if math.isinf(bound) else low + (bound - low) * share
            low, below = bound, cumulative
        return low

    def is_open(self, q: float) -> bool:
        """Whether the q-quantile lies in the open bucket, so that quantile_s is only a lower bound."""
        if len(self.buckets) < 2:
            return bool(self.buckets)
        return self.buckets[-2][1] < q * self.buckets[-1][1]

    def since(self, earlier: "Histogram | None") -> "Histogram":
        """What was counted after `earlier`; all of it where the source started again or its buckets changed."""
        if earlier is None or earlier.count > self.count:
            return self
        then = dict(earlier.buckets)
        if [bound for bound, _ in earlier.buckets] != [bound for bound, _ in self.buckets]:
            return self
        buckets = tuple((bound, count - then[bound]) for bound, count in self.buckets)
        both = self.sum_s is not None and earlier.sum_s is not None
        sum_s = (self.sum_s or 0.0) - (earlier.sum_s or 0.0) if both else None
        return Histogram(self.count - earlier.count, sum_s, buckets)


def merged(parts: Iterable[Histogram]) -> Histogram | None:
    """One histogram of several ranks; only bounds that all of them have can be added. None without parts."""
    all_parts = list(parts)
    if not all_parts:
        return None
    bounds = set.intersection(*({bound for bound, _ in part.buckets} for part in all_parts))
    by_bound = {bound: sum(dict(part.buckets)[bound] for part in all_parts) for bound in bounds}
    sums = [part.sum_s for part in all_parts if part.sum_s is not None]
    total = sum(sums) if len(sums) == len(all_parts) else None
    return Histogram(sum(part.count for part in all_parts), total, tuple(sorted(by_bound.items())))
