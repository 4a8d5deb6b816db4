"""What was measured of ConServe as sections: headline, the paper's tables beside ours, and without its conventions."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from control.tuning.conserve_reference import AMPD_ERROR, RATES, SATURATING
from control.tuning.report.base import Row
from control.tuning.report.markdown import Section, bullets, fixed, signed_percent, table

NO_REFERENCE: Final = "This trace is not the paper's: none of its figures is compared."
FIGURES: Final = {"ttfet_gmean": "TTFET, geometric mean", "ttfet_p95": "TTFET, P95", "tbt_p95": "TBT, P95"} | {
    "e2e_p95": "E2E, P95"
}
#: Difference from the paper's figure beyond which a figure is told as missed: relative, of violations in points.
TOLERANCE: Final = 0.15
POINTS: Final = 5.0


def run_of(runs: Iterable[Row], **which: Any) -> Row:
    """The first run that `which` describes: those by the paper's conventions come first."""
    return next(run for run in runs if all(run[key] == value for key, value in which.items()))


def headline_section(part: Row) -> Section:
    """The paper's headline gains, and what is left of them in ours."""
    runs, at = part["runs"], {"rate": SATURATING, "need": "oracle"}
    ours = {caps: run_of(runs, policy="conserve", caps=caps, **at) for caps in ("300/300", "300/200")}
    ampd = run_of(runs, policy="ampd", error=AMPD_ERROR, caps="300/300", **at)
    mixed = run_of(runs, policy="collocated", caps="300/300", **at)
    full, billed = ours["300/300"], "tokens_per_joule_idle_billed"
    compared: tuple[tuple[str, str, Row, Row, str], ...] = (
        ("P95 TTFET over AMPD 10 %", "ttfet_p95", full, ampd, "-51.08 %"),
        ("tok/J, idle billed, over AMPD 10 %", billed, full, ampd, "+7.51 %"),
        ("tok/J, idle billed, over collocated", billed, full, mixed, "+1.42 %"),
        ("tok/J, idle billed, 300/200 over 300/300", billed, ours["300/200"], full, "+22.75 %"),
    )
    rows = []
    for name, figure, one, base, paper in compared:
        change = one[figure] / base[figure] - 1.0
        rows.append([name, fixed(base[figure], 2), fixed(one[figure], 2), signed_percent(change), paper])
    head = [f"ConServe at {SATURATING:g} conversations/s", "from", "to", "ours", "paper"]
    return Section(3, "Headline of ConServe: paper, ours", (table(head, rows),))


def beside_rows(part: Row, which: str, caps: str) -> list[list[str]]:
    """Three lines a policy: the paper, ours, the difference, by rate."""
    lines = []
    cells = {
        (row["policy"], row["rate"]): row
        for row in part["reference"]
        if (row["figure"], row["caps"]) == (which, caps) and row["rate"] is not None and row["table"] == which
    }
    for policy in dict.fromkeys(policy for policy, _ in cells):
        rows = [cells[policy, rate] for rate in RATES]
        lines.append([policy, "paper", *(fixed(row["reference"], 2) for row in rows)])
        lines.append(["", "ours", *(fixed(row["ours"], 2) + ("*" if row["fitted"] else "") for row in rows)])
        lines.append(["", "difference", *(signed_percent(row["difference"], 1) for row in rows)])
    return lines


def rate_head(first: str) -> list[str]:
    """The head of a table by rate."""
    return [first, "", *(f"{rate:g}/s" for rate in RATES)]


def latency_section(part: Row) -> Section:
    """Latencies by policy and rate beside the paper's."""
    title = "Latency of ConServe beside the paper"
    if not part["reference"]:
        return Section(3, title, (NO_REFERENCE,))
    tables = [table(rate_head(name), beside_rows(part, key, "300/300"), names=2) for key, name in FIGURES.items()]
    lead = "300/300 W, in units of standalone, by conversations/s; AMPD with 10 % of wrong turns."
    return Section(3, title, (lead, *tables, _full_disaggregation(part)))


def _full_disaggregation(part: Row) -> str:
    """Full disaggregation's ranges in a sentence."""
    rows = {row["figure"]: row for row in part["reference"] if row["table"] == "full_disagg"}
    said = [
        f"{name} {_range(rows[key]['ours'])} (paper {_range(rows[key]['reference'])})"
        for key, name in (
            ("ttfet_p95", "P95 TTFET"),
            ("violations.ttfet", "TTFET violations, %,"),
            ("tokens_per_joule", "tok/J"),
        )
    ]
    return f"Full disaggregation over these rates: {'; '.join(said)}."


def _range(bounds: Sequence[float]) -> str:
    """Lowest to highest."""
    return f"{bounds[0]:.1f}–{bounds[1]:.1f}"


def violation_section(part: Row) -> Section:
    """Violations by policy and rate, the paper's where it gives them."""
    runs = [run for run in part["runs"] if run["need"] == "oracle" and run["caps"] == "300/300"]
    rows = [[p, "ours", *(violations(run_of(runs, policy=p, rate=rate)) for rate in RATES)] for p in policies(runs)]
    for policy in ("collocated", "ampd", "conserve"):
        cells = [row for row in part["reference"] if row["table"] == "saturation" and row["policy"] == policy]
        values = [fixed(row["reference"], 1) for row in cells if row["figure"].startswith("violations")]
        if values:
            rows.append([policy, "paper", *[""] * (len(RATES) - 1), " / ".join(values)])
    lead = "Share of conversations over 5 x standalone in TTFET / TBT / E2E, %; 300/300 W."
    return Section(3, "SLO violations under ConServe's policies", (lead, table(rate_head("policy"), rows, names=2)))


def policies(runs: Iterable[Row]) -> list[str]:
    """The policies of some runs, in order."""
    return list(dict.fromkeys(run["policy"] for run in runs))


def violations(run: Row) -> str:
    """Violations of TTFET / TBT / E2E, %."""
    return " / ".join(fixed(run["violations"][name], 1) for name in ("ttfet", "tbt", "e2e"))


def energy_section(part: Row) -> Section:
    """Tokens per joule beside the paper's, idle billed, and where the joules went."""
    blocks = [
        "Full-context tokens per joule of all GPUs, without the idle draw of those that have finished. The A40's "
        "draw at one sequence was fitted by least squares on the three figures with a star. That a cap cuts peaks, and "
        "that full batches and prefill draw all of the TDP, was chosen with all figures in view: the others are no "
        "blind test of that."
    ]
    if not part["reference"]:
        blocks.append(NO_REFERENCE)
    for caps in ("300/300", "300/200") if part["reference"] else ():
        blocks.append(table(rate_head(f"{caps} W"), beside_rows(part, "tokens_per_joule", caps), names=2))
    billed = [row for row in part["reference"] if row["figure"] == "tokens_per_joule_idle_billed"]
    if billed:
        head = [f"Idle billed, {SATURATING:g}/s", "caps", "paper", "ours", "difference"]
        cells = [(fixed(row["reference"], 2), fixed(row["ours"], 2)) for row in billed]
        named = [(row["policy"], row["caps"], signed_percent(row["difference"], 1)) for row in billed]
        rows = [[policy, caps, *pair, off] for (policy, caps, off), pair in zip(named, cells, strict=True)]
        blocks.append(table(head, rows, names=2))
    blocks.append(_joules(part))
    return Section(3, "Energy of ConServe's policies", tuple(blocks))


def _joules(part: Row) -> str:
    """Where the joules went at saturation."""
    head = [f"{SATURATING:g}/s", "caps", "prefill kJ", "decode kJ", "idle kJ", "J a conversation", "J an SLO-met one"]
    rows = [
        [
            *(run["policy"], run["caps"]),
            *(fixed(run[key] / 1e3, 1) for key in ("prefill_j", "decode_j", "idle_j")),
            *(fixed(run["joules_per_conversation"], 0), fixed(run["joules_per_slo_met"], 0)),
        ]
        for run in part["runs"]
        if run["rate"] == SATURATING and run["need"] == "oracle"
    ]
    return table(head, rows, names=2)


def sweep_section(part: Row) -> Section:
    """AMPD by the share of wrong turns, which ConServe has none of."""
    sweep = part["sweep"]
    runs = [run for run in sweep["runs"] if run["policy"] == "ampd" and run["need"] == "oracle"]
    known = {
        (row["error"], row["figure"]): row["reference"]
        for row in sweep["reference"]
        if row["policy"] == "ampd" and row["rate"] == SATURATING
    }
    conserve = run_of(sweep["runs"], policy="conserve", need="oracle")
    titles = {"ttfet_p95": "TTFET P95", "violations.ttfet": "TTFET violations, %", "tokens_per_joule": "tok/J"}
    head = ["wrong turns, %"]
    for title in titles.values():
        head += [f"{title}, paper", "ours"]
    rows = []
    for run in runs:
        values = (run["ttfet_p95"], run["violations"]["ttfet"], run["tokens_per_joule"])
        cells = [f"{run['error']:g}"]
        for figure, value in zip(titles, values, strict=True):
            cells += [fixed(known.get((run["error"], figure)), 2), fixed(value, 2)]
        rows.append(cells)
    lead = (
        f"At {SATURATING:g} conversations/s, 300/300 W. ConServe predicts nothing and stays at P95 TTFET "
        f"{conserve['ttfet_p95']:.2f}. Which turns are wrong is drawn once, by the seed."
    )
    return Section(3, "AMPD by injected error", (lead, table(head, rows)))


def service_section(part: Row) -> Section:
    """The same with the need that can be observed and every wait counted."""
    head = ["policy", "conversations/s", "TTFET P95", "TBT P95", "E2E P95", "violations TTFET / TBT / E2E, %"]
    head += ["prefiller's queue, mean s", "wait for a decoder, mean s"]
    rows = [
        [
            *(run["policy"], f"{run['rate']:g}"),
            *(fixed(run[key], 2) for key in ("ttfet_p95", "tbt_p95", "e2e_p95")),
            *(violations(run), fixed(run["prefill_queue_mean_s"], 2), fixed(run["hold_mean_s"], 2)),
        ]
        for run in part["runs"]
        if run["need"] == "observed" and run["caps"] == "300/300" and run["policy"] != "full-disagg"
    ]
    lead = (
        "What a client sees: a decoder must have free what the conversation holds so far, and every wait is latency. "
        "300/300 W; AMPD with 10 % of wrong turns."
    )
    return Section(3, "Without the paper's conventions", (lead, table(head, rows, names=2)))


def misses_section(part: Row) -> Section:
    """Figures of the paper that ours miss by more than TOLERANCE, violations by more than POINTS."""
    title = "What of ConServe is not reproduced"
    missed = misses([*part["reference"], *part["sweep"]["reference"]])
    if not missed:
        return Section(3, title, (NO_REFERENCE,))
    return Section(3, title, (bullets(missed), "As far as we know why:", bullets(CAUSES)))


def misses(reference: Sequence[Row]) -> list[str]:
    """How many of the figures beside the paper's are off, then each of these; nothing where there are none."""
    known = {tuple(row[key] for key in KEYS): row for row in reference}
    compared = [row for row in known.values() if row["rate"] is not None and row["ours"] is not None]
    far = [row for row in compared if is_far(row)]
    count = (
        f"Figures off the paper's by more than {100 * TOLERANCE:g} %, violations by more than {POINTS:g} points: "
        f"{len(far)} of {len(compared)}."
    )
    return [count, *(_far(row) for row in far)] if compared else []


#: What the differences come from, where that is known.
CAUSES: Final = (
    "AMPD: which turns are wrong is one draw, and the paper's is not known to us. P95 TTFET sits in the tail that "
    "those turns make, and moves with the draw.",
    "Collocation tips over where prefills crowd decoding out. The fitted cost lines leave our engines a little more "
    "room: they tip over at a rate somewhat above 1.634/s instead of below.",
    "Tokens per joule of collocation at 300/200 W: the paper's own row falls from 1.25/s to 1.5/s and rises again "
    "at 1.634/s. A draw that depends on the batch and the cap alone cannot follow that.",
    "Full disaggregation: handing over holds the prefiller up for the time that the paper gives for a wrong turn. "
    "With it 1.634/s saturate the prefiller, as the paper says, but every turn pays it.",
)


KEYS: Final = ("policy", "rate", "caps", "error", "figure")


def is_far(row: Row) -> bool:
    """Whether a figure is told as missed."""
    if row["figure"].startswith("violations"):
        return bool(abs(row["ours"] - row["reference"]) > POINTS)
    return bool(abs(row["difference"]) > TOLERANCE)


def _far(row: Row) -> str:
    """A figure that is off, with both values."""
    error = "" if row["error"] is None else f" {row['error']:g} %"
    points = row["figure"].startswith("violations")
    figure = row["figure"].replace(".", " ").replace("_", " ") + (", %," if points else "")
    what = f"{row['policy']}{error} at {row['rate']:g}/s, {row['caps']} W: {figure}"
    off = f"{row['ours'] - row['reference']:+.1f} points" if points else signed_percent(row["difference"], 1)
    return f"{what} {row['ours']:.4g} against {row['reference']:.4g} ({off})."
