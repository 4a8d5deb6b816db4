"""HexGen-Flow's experiment again: five schedulers on a text-to-SQL trace, in the mode of the authors' simulator.

Figures of ours are set beside reruns of the authors' artifact where fleet, trace, rate, alpha and seed are those of
the reruns (HexGen-Flow, section 8).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from control.errors import FleetError
from control.model.fleet import Fleet, load_fleet
from control.model.hexgen_profile import PairTimes
from control.model.workload import Workload
from control.twin.artifact import replay
from control.twin.artifact_build import base_slo_s, build_artifact

FLEETS: Final = ("hexgen-hetero-1", "hexgen-hetero-2", "hexgen-homo")
POLICIES: Final = ("rr-fcfs", "vtc", "rr-pq", "wb-fcfs", "hexgen", "sjf")
USE_ALPHA: Final = ("wb-fcfs", "hexgen")
SLO_SCALES: Final = (1, 2, 3, 4, 5)
DEFAULT_ALPHA: Final = 0.1

#: The authors' alpha by fleet and workflows of the trace, at .5 and 1 workflows/s (section 4).
_ALPHAS: Final = {
    ("hexgen-hetero-1", 90): {0.5: 0.1, 1.0: 0.0},
    ("hexgen-hetero-1", 96): {0.5: 0.3, 1.0: 0.1},
    ("hexgen-hetero-1", 110): {0.5: 0.4, 1.0: 0.0},
    ("hexgen-hetero-2", 90): {0.5: 0.1, 1.0: 0.0},
    ("hexgen-hetero-2", 96): {0.5: 0.2, 1.0: 0.0},
    ("hexgen-hetero-2", 110): {0.5: 0.2, 1.0: 0.0},
}

#: Workflows and calls of the trace that the reference rows belong to, and the seed of its arrivals.
_REFERENCE_TRACE: Final = (90, 1732)
_REFERENCE_SEED: Final = 0


class Row(NamedTuple):
    """Figures of a rerun of the artifact."""

    p95_s: float
    throughput_wps: float | None = None  # workflows/s; None: not recorded


#: Fleet, rate, policy, alpha (None: the policy has none) -> figures (section 8).
REFERENCE: Final = {
    ("hexgen-hetero-1", 0.5, "rr-fcfs", None): Row(446.3, 0.1636),
    ("hexgen-hetero-1", 0.5, "vtc", None): Row(482.9, 0.1661),
    ("hexgen-hetero-1", 0.5, "rr-pq", None): Row(451.8, 0.1448),
    ("hexgen-hetero-1", 0.5, "wb-fcfs", 0.1): Row(335.8, 0.2013),
    ("hexgen-hetero-1", 0.5, "hexgen", 0.1): Row(313.0, 0.1963),
    ("hexgen-hetero-1", 0.5, "hexgen", 0.0): Row(322.9),
    ("hexgen-hetero-1", 0.5, "hexgen", 0.2): Row(342.7),
    ("hexgen-hetero-1", 0.5, "hexgen", 0.3): Row(426.0),
    ("hexgen-hetero-1", 0.5, "hexgen", 0.4): Row(435.3),
    ("hexgen-hetero-1", 0.5, "hexgen", 0.5): Row(432.7),
    ("hexgen-hetero-1", 1.0, "rr-fcfs", None): Row(513.7, 0.1502),
    ("hexgen-hetero-1", 1.0, "vtc", None): Row(494.6, 0.1644),
    ("hexgen-hetero-1", 1.0, "rr-pq", None): Row(544.2, 0.1406),
    ("hexgen-hetero-1", 1.0, "wb-fcfs", 0.0): Row(388.3, 0.1931),
    ("hexgen-hetero-1", 1.0, "hexgen", 0.0): Row(406.9, 0.1772),
    ("hexgen-hetero-2", 0.5, "rr-fcfs", None): Row(459.7, 0.1553),
    ("hexgen-hetero-2", 0.5, "vtc", None): Row(482.8, 0.1650),
    ("hexgen-hetero-2", 0.5, "rr-pq", None): Row(428.7, 0.1557),
    ("hexgen-hetero-2", 0.5, "wb-fcfs", 0.1): Row(352.0, 0.1954),
    ("hexgen-hetero-2", 0.5, "hexgen", 0.1): Row(333.7, 0.1893),
    ("hexgen-hetero-2", 1.0, "rr-fcfs", None): Row(486.0, 0.1646),
    ("hexgen-hetero-2", 1.0, "vtc", None): Row(479.6, 0.1700),
    ("hexgen-hetero-2", 1.0, "rr-pq", None): Row(493.9, 0.1551),
    ("hexgen-hetero-2", 1.0, "wb-fcfs", 0.0): Row(377.1, 0.1955),
    ("hexgen-hetero-2", 1.0, "hexgen", 0.0): Row(391.7, 0.1804),
}


def artifact_fleet(name: str) -> Fleet:
    """One of the paper's fleets, by its built-in name or without the leading "hexgen-".

    Raises:
        FleetError: any other name.
    """
    full = name if name.startswith("hexgen-") else f"hexgen-{name}"
    if full not in FLEETS:
        raise FleetError(f"--fleet = {name!r}: expected one of {', '.join(FLEETS)}")
    return load_fleet(full)


def authors_alpha(fleet: str, workflows: int, rate: float) -> float:
    """The authors' alpha for a fleet, a trace of theirs (told by its workflows) and a rate, else DEFAULT_ALPHA."""
    return _ALPHAS.get((fleet, workflows), {}).get(rate, DEFAULT_ALPHA)


def reproduce_hexgen(
    work: Workload, fleet: Fleet, times: PairTimes, rates: Sequence[float], alphas: Sequence[float] | None, seed: int
) -> dict[str, Any]:
    """Every policy at every rate and alpha (None: the authors'), beside the reference rows that apply.

    A policy without an alpha runs once a rate; its alpha is None.

    Raises:
        SettingError, FleetError, TraceError: as `build_artifact`.
    """
    runs = []
    for rate in rates:
        grid = authors_alpha(fleet.name, len(work.workflows), rate)
        for policy in POLICIES:
            for alpha in (alphas or [grid]) if policy in USE_ALPHA else [None]:
                runs.append(run_artifact(work, fleet, times, policy, rate=rate, alpha=alpha, seed=seed))
    return {
        "trace": work.name,
        "workflows": len(work.workflows),
        "calls": len(work.calls),
        "profile": times.source,
        "base_slo_s": base_slo_s(fleet, times),
        "runs": runs,
        "reference": list(_compared(work, runs)),
        "problems": list(work.problems),
    }


def run_artifact(
    work: Workload, fleet: Fleet, times: PairTimes, policy: str, *, rate: float, alpha: float | None, seed: int
) -> dict[str, Any]:
    """One replay as figures: latencies in s, workflows/s over the makespan, attainment by SLO scale.

    Calls are scheduled for a scale of 1; attainment at a scale is the share of workflows that took no longer than
    scale x base SLO.
    """
    world = build_artifact(work, fleet, times, policy, alpha=alpha or 0.0, rate=rate, seed=seed)
    replay(world)
    ended_s = world.workflows["finished_s"]
    latency_s = ended_s - world.workflows["arrival_s"]
    base_s = base_slo_s(fleet, times)
    return {
        "policy": policy,
        "fleet": fleet.name,
        "rate": rate,
        "alpha": alpha,
        "seed": seed,
        "p95_s": float(np.percentile(latency_s, 95)),
        "throughput_wps": len(ended_s) / float(ended_s.max()),
        "mean_s": float(latency_s.mean()),
        "attainment": {str(scale): float((latency_s <= scale * base_s).mean()) for scale in SLO_SCALES},
    }


def _compared(work: Workload, runs: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The reference figures of the runs that have some, with ours and (ours - reference) / reference."""
    if (len(work.workflows), len(work.calls)) != _REFERENCE_TRACE:
        return
    for run in runs:
        row = REFERENCE.get((run["fleet"], run["rate"], run["policy"], run["alpha"]))
        if row is None or run["seed"] != _REFERENCE_SEED:
            continue
        for figure, value in row._asdict().items():
            if value is not None:
                which = {key: run[key] for key in ("policy", "fleet", "rate", "alpha")}
                difference = (run[figure] - value) / value
                yield which | {"figure": figure, "reference": value, "ours": run[figure], "difference": difference}
