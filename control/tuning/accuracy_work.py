"""The requests of a recorded run as a workload for the twin."""

import numpy as np

from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload.arrivals import arrange, generator, poisson_or_gamma
from control.workload.runs import RecordedRun, Requests, Totals
from control.workload.table import Floats, Ints

FAR_S = 1e9  # deadlines play no part in a replay
USUAL_CV = 1.0  # coefficient of variation of lengths of which only the mean is known
SEED = 0


def work_of(run: RecordedRun) -> Workload:
    """One workflow of one call for each request."""
    requests = run.requests or drawn(run.totals)
    n = len(requests.arrival_s)
    workflows, calls = empty_workflows(n), empty_calls(n)
    workflows["arrival_s"], workflows["slo_s"] = requests.arrival_s, FAR_S
    workflows["n_calls"], workflows["first_call"] = 1, np.arange(n)
    calls["workflow"] = np.arange(n)
    calls["input_tokens"], calls["output_tokens"] = requests.input_tokens, requests.output_tokens
    return Workload(run.path, run.format, workflows, calls, ("chat",), ("default",), ("call",), 0, 0)


def arrive(work: Workload) -> Workload:
    """The same, ready to run at the recorded times."""
    return arrange(work, seed=SEED)


def drawn(totals: Totals | None) -> Requests:
    """Requests with the totals' mean lengths, gamma-distributed; their times are unknown.

    A call that runs long is seen running more often, so the mean context of running requests tells the spread of
    outputs: context = input + (1 + cv^2) / 2 output.
    """
    assert totals is not None
    n = totals.requests
    arrivals = np.zeros(n) if totals.rate is None else poisson_or_gamma(n, totals.rate, 1.0, SEED)
    unknown = np.full(n, np.nan)
    inputs, outputs = totals.input_tokens / n, totals.output_tokens / n
    cv = USUAL_CV
    if totals.context_tokens is not None:
        cv = float(np.sqrt(np.clip(2.0 * (totals.context_tokens - inputs) / outputs - 1.0, 0.01, 4.0)))
    return Requests(
        arrivals - arrivals[0],
        lengths(totals.input_tokens, n, USUAL_CV, 1),
        lengths(totals.output_tokens, n, cv, 2),
        unknown,
        unknown.copy(),
    )


def lengths(total: int, n: int, cv: float, stream: int) -> Ints:
    """`n` token counts of mean total / n and coefficient of variation `cv`, at least 1 each."""
    shape = 1.0 / (cv * cv)
    raw: Floats = generator(SEED, stream).gamma(shape, 1.0, n)
    counts: Ints = np.maximum(1, np.rint(raw * (total / raw.sum()))).astype(np.int64)
    return counts
