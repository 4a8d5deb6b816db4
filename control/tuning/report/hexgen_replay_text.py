"""What artifact mode measured of HexGen-Flow, as sections: headline, rows beside the reference, ablation, alpha."""

from collections.abc import Iterable, Sequence
from typing import Final

from control.tuning.report.base import Row
from control.tuning.report.hexgen_replays import PUBLISHED_NAMES, PUBLISHED_RATES, SUBJECT, known
from control.tuning.report.hexgen_twin import TWIN_FLEETS
from control.tuning.report.markdown import DASH, Section, fixed, plural, share, signed_percent, span, table, times
from control.tuning.reproduce_hexgen import SLO_SCALES

ABLATION: Final = ("rr-fcfs", "rr-pq", "wb-fcfs", "hexgen")
GAINS: Final = {"p95_gain": "P95 gain", "throughput_gain": "Throughput gain"}


def summary_section(part: Row) -> Section:
    """The published headline beside the gains of the artifact's rerun and ours, by baseline."""
    rates = " and ".join(f"{rate:g}" for rate in PUBLISHED_RATES)
    lead = (
        f"Gains of hexgen at {rates} workflows/s on {' and '.join(TWIN_FLEETS)}: lowest to highest, with the median. "
        "P95 gain is the baseline's P95 latency over hexgen's, throughput gain hexgen's throughput over the baseline's."
    )
    return Section(3, "Headline: paper, artifact rerun, ours", (lead, *(_headline(part, key) for key in GAINS)))


def _headline(part: Row, key: str) -> str:
    """One gain: a row a source, a column a published baseline."""
    least, most = part["published"][key]
    head = [GAINS[key], *(f"over {name} ({policy})" for policy, name in PUBLISHED_NAMES.items())]
    rows = [["paper (over all four)", *[f"{least:.2f}–{most:.2f}x"] * len(PUBLISHED_NAMES)]]
    for source, gains in headline_gains(part).items():
        cells = [span([g[key] for g in gains if g["over"] == name and g[key] is not None]) for name in PUBLISHED_NAMES]
        rows.append([source, *cells])
    return table(head, rows)


def headline_gains(part: Row) -> dict[str, list[Row]]:
    """Gains over the published baselines, at the published rates on the unlike fleets, by where they were measured."""
    gains = [row for row in part["artifact"]["gains"] if _is_published(row)]
    twin = [row for row in part["twin"]["gains"] if _is_published(row)]
    which = [{"fleet": row["fleet"], "rate": row["rate"], "over": row["over"]} for row in gains]
    found = {
        "the artifact's rerun": [at | row["artifact"] for at, row in zip(which, gains, strict=True)],
        "our artifact mode": [at | row["ours"] for at, row in zip(which, gains, strict=True)],
    }
    for name in dict.fromkeys(row["name"] for row in twin):
        found[f"our full twin ({name})"] = [row for row in twin if row["name"] == name]
    return found


def _is_published(row: Row) -> bool:
    """Whether a gain is one that the paper speaks of."""
    return row["rate"] in PUBLISHED_RATES and row["over"] in PUBLISHED_NAMES and row["fleet"] in TWIN_FLEETS


def replay_sections(artifact: Row) -> list[Section]:
    """Rows beside the reference, gains, ablation and alpha curves of artifact mode."""
    chosen = [run for run in artifact["runs"] if run["authors_choice"]]
    return [
        Section(3, "Artifact mode beside the artifact's rerun", (_met(artifact["met"]), _rows(chosen, artifact))),
        Section(3, "Gains of hexgen in artifact mode", (_gain_lead(artifact["gains"]), _gains(artifact["gains"]))),
        Section(3, "Ablation in artifact mode", (_ABLATION_TEXT, _ablation(chosen))),
        Section(3, "Alpha in artifact mode", (_ALPHA_TEXT, _alpha(artifact))),
    ]


def _met(met: Row) -> str:
    """How many figures agree with the artifact's."""
    if not met["figures"]:
        return "No row of the artifact's rerun belongs to this trace."
    within = f"within {100 * met['tolerance']:g} % of the artifact's rerun"
    return (
        f"Of {plural(met['points'], 'point')} (fleet, rate, policy, alpha; those of the alpha curve below included), "
        f"{met['points_met']} are {within}; of {plural(met['figures'], 'figure')}, {met['figures_met']} are. The rerun "
        "has no rows for the other lines. Alpha is the authors' where they name one. The paper gives gains alone."
    )


def _rows(chosen: Iterable[Row], artifact: Row) -> str:
    """Ours and the reference, a line a run at the published rates."""
    head = ["fleet", "rate", "policy", "alpha"]
    for figure in ("P95 s", "workflows/s"):
        head += [f"{figure}, artifact", "ours", "difference"]
    rows = []
    for run in chosen:
        if run["rate"] in PUBLISHED_RATES:
            row = [run["fleet"], f"{run['rate']:g}", run["policy"], _alpha_of(run)]
            for key, theirs_digits, ours_digits in (("p95_s", 1, 1), ("throughput_wps", 4, 4)):
                theirs = known(artifact["reference"], run, key)
                difference = None if theirs is None else (run[key] - theirs) / theirs
                row += [fixed(theirs, theirs_digits), fixed(run[key], ours_digits), signed_percent(difference)]
            rows.append(row)
    return table(head, rows, names=4)


def _alpha_of(run: Row) -> str:
    """A run's alpha; a dash where the policy has none."""
    return DASH if run["alpha"] is None else f"{run['alpha']:g}"


def _gain_lead(gains: Iterable[Row]) -> str:
    """How often hexgen is the worse of the two in ours."""
    values = [row["ours"][key] for row in gains if row["rate"] in PUBLISHED_RATES for key in GAINS]
    worse = sum(value < 1.0 for value in values)
    return f"Below 1.00x hexgen is the worse of the two: in {worse} of our {len(values)} gains."


def _gains(gains: Iterable[Row]) -> str:
    """Gains over each other policy at the published rates."""
    head = ["fleet", "rate", "over"]
    for name in GAINS.values():
        head += [f"{name}, artifact", "ours"]
    rows = [
        [row["fleet"], f"{row['rate']:g}", row["over"]]
        + [times(row[mode][key]) for key in GAINS for mode in ("artifact", "ours")]
        for row in gains
        if row["rate"] in PUBLISHED_RATES
    ]
    return table(head, rows, names=3)


_ABLATION_TEXT: Final = (
    "Each level of the scheduler alone, and both: rr-pq has the urgency queue, wb-fcfs the dispatch score, hexgen "
    "both. Attainment is the share of workflows that ended within the base SLO times the scale. Both "
    "published rates are overload."
)


def _ablation(chosen: Iterable[Row]) -> str:
    """P95, throughput, mean and attainment of the four combinations."""
    head = ["fleet", "rate", "policy", "P95 s", "workflows/s", "mean s", *(f"at {k} x SLO, %" for k in SLO_SCALES)]
    rows = [
        [run["fleet"], f"{run['rate']:g}", run["policy"]]
        + [fixed(run["p95_s"], 1), fixed(run["throughput_wps"], 4), fixed(run["mean_s"], 1)]
        + [share(run["attainment"][str(scale)]) for scale in SLO_SCALES]
        for run in chosen
        if run["policy"] in ABLATION
    ]
    return table(head, rows, names=3)


_ALPHA_TEXT: Final = "P95 workflow latency of hexgen by alpha, s. Bold: the lowest of a line, where one alone is."


def _alpha(artifact: Row) -> str:
    """P95 by alpha: ours at every fleet and rate, with the reference where there is a curve of it."""
    curves: dict[tuple[str, float], list[Row]] = {}
    for run in artifact["runs"]:
        if run["policy"] == SUBJECT:
            curves.setdefault((run["fleet"], run["rate"]), []).append(run)
    alphas = [run["alpha"] for run in next(iter(curves.values()))]
    rows = []
    for (fleet, rate), curve in curves.items():
        rows.append([fleet, f"{rate:g}", "ours", *lowest_bold([run["p95_s"] for run in curve])])
        theirs = [known(artifact["reference"], run, "p95_s") for run in curve]
        if sum(value is not None for value in theirs) > 1:
            rows.append([fleet, f"{rate:g}", "artifact", *lowest_bold(theirs)])
    return table(["fleet", "rate", "", *(f"{alpha:g}" for alpha in alphas)], rows, names=3)


def lowest_bold(values: Sequence[float | None]) -> list[str]:
    """Seconds with one decimal, the lowest of them bold where no other is as low."""
    cells = [fixed(value, 1) for value in values]
    least = min((value for value in values if value is not None), default=None)
    if least is not None and values.count(least) == 1:
        best = values.index(least)
        cells[best] = f"**{cells[best]}**"
    return cells
