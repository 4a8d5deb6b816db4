"""What a real server served, beside the twin's replay of the same calls at the same times; and the costs that close
the gap.

A call does not have its server to itself: others are prefilled between its tokens, and it waits for the iteration that
is under way when it comes. The replay has all of that, so what differs from it is the profile's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from control.model.fleet import Fleet, InstanceSpec
from control.model.workload import Workload, empty_calls, empty_workflows
from control.twin.simulate import simulate
from control.workload.arrivals import arrange

FAR_S = 1e9  # deadlines play no part
#: Shares of the calls, in the order of their sending, between which they are judged: what was under way before the
#: first and what has not ended at the last is missing in the replay.
JUDGED = 0.15, 0.85
BOUNDS = 0.2, 5.0  # a factor beyond these is a fault, not drift
ROUNDS = 20
LARGEST_STEP = 1.15  # by which a round changes a factor at most
NEAR = 0.01  # relative difference at which a fit has come close enough


class Served(NamedTuple):
    """A call that a real server has answered."""

    sent_s: float  # on any clock that does not jump
    input_tokens: int  # computed there: without those that came from its cache
    output_tokens: int
    ttft_s: float  # nan: not seen, as the answer was no stream
    took_s: float  # from sending to the last token


class Compared(NamedTuple):
    """Means over the calls that are judged, s."""

    calls: int
    predicted_ttft_s: float
    ttft_s: float
    predicted_tpot_s: float
    tpot_s: float

    @property
    def ttft_drift(self) -> float:
        """Served over predicted, less 1."""
        return self.ttft_s / max(self.predicted_ttft_s, 1e-9) - 1.0

    @property
    def tpot_drift(self) -> float:
        """Same for TPOT."""
        return self.tpot_s / max(self.predicted_tpot_s, 1e-9) - 1.0


def compare(spec: InstanceSpec, served: Sequence[Served]) -> Compared | None:
    """The replay of these calls on the costs of `spec` beside what was served; None where no call can be judged.

    Raises:
        SettingError: the spec names no costs.
    """
    calls = sorted(served)
    judged = np.zeros(len(calls), bool)
    judged[int(JUDGED[0] * len(calls)) : int(np.ceil(JUDGED[1] * len(calls)))] = True
    ttft_s, took_s = np.array([c.ttft_s for c in calls]), np.array([c.took_s for c in calls])
    outputs = np.array([c.output_tokens for c in calls], np.int64)
    judged &= np.isfinite(ttft_s) & (outputs > 1)
    replayed = replay(spec, calls) if judged.any() else None
    if replayed is None:
        return None
    judged &= replayed["finished_s"] > 0.0
    if not judged.any():
        return None
    first_s = replayed["first_token_s"] - replayed["ready_s"]
    whole_s = replayed["finished_s"] - replayed["ready_s"]
    steps = np.maximum(1, outputs - 1)
    means = [float(x[judged].mean()) for x in (first_s, ttft_s, (whole_s - first_s) / steps, (took_s - ttft_s) / steps)]
    return Compared(int(judged.sum()), *means)


def replay(spec: InstanceSpec, calls: Sequence[Served]) -> np.ndarray:
    """The calls' rows after the twin has served them, alone on an instance like `spec`, as they were sent."""
    n = len(calls)
    workflows, rows = empty_workflows(n), empty_calls(n)
    workflows["arrival_s"], workflows["slo_s"] = [call.sent_s - calls[0].sent_s for call in calls], FAR_S
    workflows["n_calls"], workflows["first_call"] = 1, np.arange(n)
    rows["workflow"] = np.arange(n)
    rows["input_tokens"] = [max(1, call.input_tokens) for call in calls]
    rows["output_tokens"] = [max(1, call.output_tokens) for call in calls]
    work = Workload("served", "served", workflows, rows, ("chat",), ("default",), ("call",), 0, 0)
    alone = replace(spec, url=None, role="mixed", prefix_caching=False)
    return simulate(arrange(work, seed=0), Fleet("served", (alone,)), "rr-fcfs").calls


def fit(spec: InstanceSpec, served: Sequence[Served]) -> InstanceSpec:
    """`spec` with the factors under which the replay's mean TTFT and mean TPOT are those that were served.

    Each round takes out a part of what is left: either factor bears on both times, and near saturation by more than in
    proportion. `spec` itself where nothing can be judged.

    Raises:
        SettingError: the spec names no costs.
    """
    for _ in range(ROUNDS):
        seen = compare(spec, served)
        if seen is None or max(abs(seen.ttft_drift), abs(seen.tpot_drift)) <= NEAR:
            break
        prefill = moved(spec.prefill_scale, seen.ttft_drift)
        spec = replace(spec, prefill_scale=prefill, decode_scale=moved(spec.decode_scale, seen.tpot_drift))
    return spec


def moved(factor: float, drift: float) -> float:
    """A factor after one round."""
    step = min(LARGEST_STEP, max(1.0 / LARGEST_STEP, (1.0 + drift) ** 0.4))
    return float(min(BOUNDS[1], max(BOUNDS[0], factor * step)))
