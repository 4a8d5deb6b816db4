"""Keep a profile up to date from live answers: two scale factors, for prefill and for decode."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from control.model.profile import Profile
from control.model.scaling import stretched

WINDOW = 200  # latest answers that count
LEAST = 10  # answers below which a factor stays 1
BOUNDS = 0.2, 5.0  # a factor beyond these is a fault, not drift


class Observed(NamedTuple):
    """One answer: what the profile as it was read, unrefined, predicted and what was measured; nan where unknown."""

    predicted_ttft_s: float
    ttft_s: float
    predicted_tpot_s: float
    tpot_s: float


@dataclass(frozen=True)
class Refined:
    """The profile scaled to what was seen."""

    profile: Profile
    prefill_scale: float
    decode_scale: float
    prefill_samples: int
    decode_samples: int

    @property
    def drift_percent(self) -> float:
        """The larger departure of the two factors from 1, %, with its sign."""
        return 100.0 * max((self.prefill_scale - 1.0, self.decode_scale - 1.0), key=abs)


def refine(profile: Profile, observed: Sequence[Observed], window: int = WINDOW) -> Refined:
    """`profile` scaled by the medians of measured over predicted, TTFT and TPOT, in the last `window` answers."""
    latest = observed[-window:]
    prefill = [o.ttft_s / o.predicted_ttft_s for o in latest if sound(o.predicted_ttft_s, o.ttft_s)]
    decode = [o.tpot_s / o.predicted_tpot_s for o in latest if sound(o.predicted_tpot_s, o.tpot_s)]
    scales = middle(prefill), middle(decode)
    return Refined(stretched(profile, *scales), *scales, len(prefill), len(decode))


def sound(predicted: float, measured: float) -> bool:
    """Whether a pair can be compared."""
    return math.isfinite(predicted) and math.isfinite(measured) and predicted > 0.0 and measured > 0.0


def middle(ratios: Iterable[float]) -> float:
    """The median within bounds; 1 where there are too few."""
    known = list(ratios)
    return float(np.clip(np.median(known), *BOUNDS)) if len(known) >= LEAST else 1.0
