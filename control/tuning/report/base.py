"""What every part of the reproduction report is measured on, and how figures over several seeds are kept."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from control.model.hexgen_profile import PairTimes
from control.model.workload import Workload

Row = dict[str, Any]  # one measured object, as it stands in the JSON


class Inputs(NamedTuple):
    """What the report is about."""

    work: Workload  # text-to-SQL calls, without arrival times
    times: PairTimes  # seconds per pair and GPU of the artifact's simulator
    seeds: int  # runs of everything random, seeds 0, 1, ...
    say: Callable[[str], None]  # told what is done, line by line
    #: Lives through (scenario, form, minutes, seed, alpha) with the tuner and without; None: left out.
    rehearse: Callable[[str, str, int, int, float], Row] | None = None
    talks: Workload | None = None  # ConServe's conversations, without arrival times; None: generated ones
    coding: Workload | None = None  # conversations of coding agents with think time; None: left out


class Figure(NamedTuple):
    """A figure that policies are compared by."""

    key: str  # field of a row
    title: str
    scale: float  # from the field to what is shown
    digits: int
    larger_wins: bool
    in_points: bool = False  # differences are in percentage points rather than relative


FIGURES = (
    Figure("p95_s", "P95 workflow latency, s", 1.0, 1, larger_wins=False),
    Figure("throughput_wps", "Throughput, workflows/s", 1.0, 4, larger_wins=True),
    Figure("slo_attainment", "SLO attainment, %", 100.0, 1, larger_wins=True, in_points=True),
    Figure("slo_debt_s", "SLO debt, s", 1.0, 0, larger_wins=False),
)


def spread(values: Sequence[float | None]) -> Row | None:
    """Mean, standard deviation (of the runs, n - 1) and the values of a figure; None where a run lacks it."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    sd = float(np.std(known, ddof=1)) if len(known) > 1 else 0.0
    return {"mean": float(np.mean(known)), "sd": sd, "values": known}


def mean_of(row: Row, key: str) -> float | None:
    """Mean over seeds of a figure of a row; None where it was not measured."""
    return None if row[key] is None else float(row[key]["mean"])
