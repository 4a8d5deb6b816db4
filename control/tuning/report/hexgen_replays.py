"""HexGen-Flow in the mode of the authors' simulator: every run the report shows, and the gains they give."""

from collections.abc import Iterable, Sequence
from typing import Final

from control.tuning.alpha import GRID
from control.tuning.report.base import Inputs, Row
from control.tuning.reproduce_hexgen import FLEETS, artifact_fleet, authors_alpha, reproduce_hexgen

SUBJECT: Final = "hexgen"
ARRIVAL_SEED: Final = 0  # of the authors' arrivals
PUBLISHED_RATES: Final = (0.5, 1.0)  # workflows/s
REPLAY_RATES: Final = (0.1, *PUBLISHED_RATES)  # one within capacity beside them, for attainment's sake

#: The published headline: HexGen-Flow over each of these, lowest and highest (abstract).
PUBLISHED_GAINS: Final = {"p95_gain": (1.42, 1.56), "throughput_gain": (1.49, 1.81)}
PUBLISHED_NAMES: Final = {"rr-fcfs": "vLLM", "vtc": "VTC", "qlm": "QLM", "p2c": "Ray Serve"}

#: A figure counts as met when it differs from its reference by at most this share.
TOLERANCE: Final = 0.005


def replays(inputs: Inputs) -> Row:
    """Runs of every fleet, rate, policy and alpha, the reference figures that apply, and hexgen's gains."""
    runs, reference, base_slos = [], [], {}
    for name in FLEETS:
        fleet = artifact_fleet(name)
        found = reproduce_hexgen(inputs.work, fleet, inputs.times, REPLAY_RATES, GRID, ARRIVAL_SEED)
        for run in found["runs"]:
            own = authors_alpha(fleet.name, found["workflows"], run["rate"])
            runs.append(run | {"authors_choice": run["alpha"] is None or run["alpha"] == own})
        reference += found["reference"]
        base_slos[name] = found["base_slo_s"]
        inputs.say(f"HexGen-Flow, artifact mode: {name} done")
    chosen = [run for run in runs if run["authors_choice"]]
    return {
        "base_slo_s": base_slos,
        "runs": runs,
        "reference": reference,
        "met": counted(reference),
        "gains": list(gains(chosen, reference)),
    }


def counted(reference: Iterable[Row]) -> Row:
    """How many reference figures, and points (fleet, rate, policy, alpha), ours meet within TOLERANCE."""
    points: dict[tuple[object, ...], list[bool]] = {}
    for row in reference:
        close = abs(row["difference"]) <= TOLERANCE
        points.setdefault((row["fleet"], row["rate"], row["policy"], row["alpha"]), []).append(close)
    figures = [close for closes in points.values() for close in closes]
    return {
        "tolerance": TOLERANCE,
        "figures": len(figures),
        "figures_met": sum(figures),
        "points": len(points),
        "points_met": sum(all(closes) for closes in points.values()),
    }


def gains(runs: Sequence[Row], reference: Sequence[Row]) -> Iterable[Row]:
    """What hexgen gains over each other policy of the same fleet and rate: ours, and in the artifact's rerun."""
    for subject in (run for run in runs if run["policy"] == SUBJECT):
        for other in runs:
            same = (other["fleet"], other["rate"]) == (subject["fleet"], subject["rate"])
            if same and other["policy"] != SUBJECT:
                ours = _gains(subject["p95_s"], other["p95_s"], subject["throughput_wps"], other["throughput_wps"])
                theirs = _gains(
                    *(known(reference, run, "p95_s") for run in (subject, other)),
                    *(known(reference, run, "throughput_wps") for run in (subject, other)),
                )
                which = {"fleet": subject["fleet"], "rate": subject["rate"], "over": other["policy"]}
                yield which | {"ours": ours, "artifact": theirs}


def known(reference: Iterable[Row], run: Row, figure: str) -> float | None:
    """The artifact's own figure for a run; None where there is none."""
    where = ("fleet", "rate", "policy", "alpha")
    rows = (row for row in reference if row["figure"] == figure and all(row[key] == run[key] for key in where))
    row = next(rows, None)
    return None if row is None else float(row["reference"])


def _gains(p95_s: float | None, other_p95_s: float | None, wps: float | None, other_wps: float | None) -> Row:
    """Factors by which P95 latency is lower and throughput higher; None where a figure is unknown."""
    return {
        "p95_gain": other_p95_s / p95_s if p95_s and other_p95_s else None,
        "throughput_gain": wps / other_wps if wps and other_wps else None,
    }
