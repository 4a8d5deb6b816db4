"""What the full twin measured of HexGen-Flow, as sections: figures, where hexgen loses, alpha, tenants, the mix."""

from collections.abc import Iterable, Sequence

from control.tuning.report.base import FIGURES, Figure, Row, mean_of
from control.tuning.report.hexgen_replay_text import lowest_bold
from control.tuning.report.hexgen_replays import PUBLISHED_NAMES, SUBJECT
from control.tuning.report.hexgen_twin import DEFAULT_ALPHA, TUNED
from control.tuning.report.markdown import DASH, Section, bullets, fixed, listed, plural, share, table


def twin_sections(twin: Row) -> list[Section]:
    """Policies by fleet, rate and figure; the policies that beat hexgen; alpha curves."""
    fleets = list(dict.fromkeys(row["fleet"] for row in twin["runs"]))
    return [
        Section(3, "Full twin", (_lead(twin),)),
        *(Section(4, f"Full twin: {fleet}", tuple(_by_figure(twin, fleet))) for fleet in fleets),
        loss_section(twin),
        Section(3, "Alpha in the full twin", (_ALPHA_TEXT, _curves(twin["curve"]), _tuned(twin["runs"]))),
    ]


def _lead(twin: Row) -> str:
    """What the lines are, where the costs come from, and whether all workflows ended."""
    names = ", ".join(f"{policy} stands for {name}" for policy, name in PUBLISHED_NAMES.items())
    kinds = listed(sorted({kind for costs in twin["costs"] for kind in costs["provenance"].values()}))
    broken = sum(row["broken"] for row in twin["runs"])
    ended = "Every workflow of every run ended" if not broken else f"{plural(broken, 'workflow')} of all runs broke"
    return (
        f"Alpha is {DEFAULT_ALPHA:g} but for the line *{TUNED}*, whose alpha `headway tune` chose at that rate on "
        f"arrivals of a seed that is not among those measured. Of the published baselines, {names}. Costs of the GPUs "
        f"are {kinds}. {ended}. Bold: another policy is better than hexgen with the default alpha."
    )


def _by_figure(twin: Row, fleet: str) -> Iterable[str]:
    """A table a figure: a line a policy, a column a rate."""
    rows = [row for row in twin["runs"] if row["fleet"] == fleet]
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    better = {
        (loss["rate"], loss["figure"], loss["to"])
        for loss in twin["losses"]
        if loss["fleet"] == fleet and loss["name"] == SUBJECT
    }
    for figure in FIGURES:
        lines: dict[str, list[str]] = {}
        for row in rows:
            cell = spread_cell(figure, row[figure.key])
            mark = "**" if (row["rate"], figure.key, row["name"]) in better else ""
            lines.setdefault(row["name"], [row["name"]]).append(f"{mark}{cell}{mark}")
        yield table([figure.title, *(f"{rate:g}/s" for rate in rates)], lines.values())


def spread_cell(figure: Figure, spread: Row | None) -> str:
    """Mean ± standard deviation."""
    if spread is None:
        return DASH
    mean, sd = (fixed(figure.scale * spread[key], figure.digits) for key in ("mean", "sd"))
    return f"{mean} ± {sd}"


def loss_section(twin: Row) -> Section:
    """For every rate and figure, the policies that beat hexgen, by how much and on how many seeds."""
    blocks = []
    for name in dict.fromkeys(row["name"] for row in twin["runs"] if row["policy"] == SUBJECT):
        losses = [loss for loss in twin["losses"] if loss["name"] == name]
        blocks += [_loss_lead(name, losses, twin["runs"]), bullets(_loss_lines(name, losses, twin["runs"]))]
    return Section(3, "Where hexgen loses", tuple(blocks))


def _loss_lead(name: str, losses: Sequence[Row], runs: Sequence[Row]) -> str:
    """In how many comparisons a line of hexgen is beaten, and by whom most often."""
    subjects = [row for row in runs if row["name"] == name]
    cells, beaten = len(subjects) * len(FIGURES), {(loss["fleet"], loss["rate"], loss["figure"]) for loss in losses}
    said = f"*{name}* is beaten by another policy in {len(beaten)} of {cells} cells (fleet, rate, figure)"
    counts: dict[str, int] = {}
    for loss in losses:
        counts[loss["to"]] = counts.get(loss["to"], 0) + 1
    order = sorted(counts, key=lambda to: (-counts[to], to))
    by = f": {', '.join(f'{to} in {counts[to]}' for to in order)}" if order else ""
    return f"{said}{by}. In brackets: on how many seeds."


def _loss_lines(name: str, losses: Sequence[Row], runs: Sequence[Row]) -> list[str]:
    """A line a fleet and rate."""
    lines = []
    for row in runs:
        if row["name"] == name:
            here = [loss for loss in losses if (loss["fleet"], loss["rate"]) == (row["fleet"], row["rate"])]
            lines.append(f"{row['fleet']}, {row['rate']:g}/s: {_beaten(here, runs)}")
    return lines


def _beaten(losses: Sequence[Row], runs: Sequence[Row]) -> str:
    """The policies that beat hexgen at one fleet and rate, figure by figure."""
    seeds = _seeds(runs)
    parts = []
    for figure in FIGURES:
        here = sorted((loss for loss in losses if loss["figure"] == figure.key), key=lambda loss: -loss["by"])
        unit = "points" if figure.in_points else "%"
        names = [f"{loss['to']} by {share(loss['by'])} {unit} ({loss['seeds']} of {seeds})" for loss in here]
        if names:
            parts.append(f"{figure.title.split(',')[0]} to {', '.join(names)}")
    return f"loses {'; '.join(parts)}." if parts else "beaten by none."


def _seeds(runs: Sequence[Row]) -> int:
    """Number of runs behind each mean."""
    return max((len(row[FIGURES[0].key]["values"]) for row in runs if row[FIGURES[0].key]), default=0)


_ALPHA_TEXT = (
    "P95 workflow latency of hexgen by alpha, s, means over seeds. Bold: the lowest of a line, where one alone is."
)


def _curves(curve: Sequence[Row]) -> str:
    """Mean P95 by alpha, a line a fleet and rate."""
    alphas = list(dict.fromkeys(row["alpha"] for row in curve))
    lines: dict[tuple[str, float], list[float | None]] = {}
    for row in curve:
        lines.setdefault((row["fleet"], row["rate"]), []).append(mean_of(row, "p95_s"))
    rows = [[fleet, f"{rate:g}", *lowest_bold(values)] for (fleet, rate), values in lines.items()]
    return table(["fleet", "rate", *(f"{alpha:g}" for alpha in alphas)], rows, names=2)


def _tuned(runs: Sequence[Row]) -> str:
    """The alpha that was tuned, and P95 at it beside that of the default."""
    tuned = {(row["fleet"], row["rate"]): row for row in runs if row["name"] == TUNED}
    rows = []
    for row in (row for row in runs if row["name"] == SUBJECT):
        other = tuned[(row["fleet"], row["rate"])]
        p95s = [fixed(mean_of(one, "p95_s"), 1) for one in (row, other)]
        rows.append([row["fleet"], f"{row['rate']:g}", f"{other['alpha']:g}", *p95s])
    return table(["fleet", "rate", "tuned alpha", f"P95 s at {DEFAULT_ALPHA:g}", "P95 s at tuned alpha"], rows, names=2)


def tenant_section(tenants: Row) -> Section:
    """Attainment of both tenants by rate and policy."""
    first, second = tenants["scales"]
    lead = (
        f"On {tenants['fleet']}: the first half of the workflows has {first:g} x the base SLO; the second half, which "
        f"arrives later, {second:g} x. Attainment, %."
    )
    return Section(3, "Two tenants with unlike SLOs", (lead, _groups(tenants, "rate", "/s", "slo_attainment")))


def mix_section(mix: Row) -> Section:
    """P95 and attainment by kind of workflow where agents share the fleet with text-to-SQL."""
    lead = (
        f"{mix['minutes']} minutes of the scenario {mix['scenario']} on {mix['fleet']}: {mix['rate']:g} workflows/s on "
        f"average, {share(mix['agent_share'], 0)} % of them agent conversations, at the loads that head the columns. "
        "First P95 workflow latency, s, then attainment, %."
    )
    tables = [_groups(mix, "load", "x", key) for key in ("p95_s", "slo_attainment")]
    return Section(3, "Agents beside text-to-SQL", (lead, *tables))


def _groups(part: Row, over: str, unit: str, key: str) -> str:
    """One figure: a line a policy, a column for each value of `over` and group."""
    figure = next(figure for figure in FIGURES if figure.key == key)
    values = list(dict.fromkeys(row[over] for row in part["runs"]))
    lines: dict[str, list[str]] = {}
    for row in part["runs"]:
        cells = [spread_cell(figure, row["by_group"][group][key]) for group in part["groups"]]
        lines.setdefault(row["name"], [row["name"]]).extend(cells)
    head = [figure.title, *(f"{value:g}{unit}, {group}" for value in values for group in part["groups"])]
    return table(head, lines.values())
