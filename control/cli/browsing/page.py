"""The result as a section of the page of benchmarks."""

from pathlib import Path
from typing import Any

from control.gateway.speed.page import BUSY, put_section

BEGIN, END = "<!-- headway bench dashboard: begin -->", "<!-- headway bench dashboard: end -->"
COLUMNS = (
    ("CPU a session", "cpu_share_per_session", "{:.1%}"),
    ("CPU of all", "cpu_share", "{:.1%}"),
    ("refreshes/s", "refreshes_per_s", "{:.2f}"),
    ("bytes a refresh", "bytes_per_refresh", "{:,.0f}"),
    ("oldest data", "age_max_s", "{:.2f} s"),
    ("first chart", "first_chart_s", "{:.2f} s"),
    ("that zooms", "first_plot_s", "{:.2f} s"),
    ("first curve of a fork", "first_curve_s", "{:.2f} s"),
    ("layout shift", "layout_shift", "{:.4g}"),
    ("while loading", "layout_shift_loading", "{:.4g}"),
    ("charts kept", "nodes_kept", "{}"),
    ("zoom kept", "zoom_kept", "{}"),
)


def head() -> list[str]:
    """The columns of the table."""
    return ["page", "sessions", *(name for name, *_ in COLUMNS)]


def cells(run: dict[str, Any]) -> list[str]:
    """One run as cells; a dash for what the page does not have."""
    shown = [shown_as(form, run[key]) for _, key, form in COLUMNS]
    return [run["page"], str(run["sessions"]), *shown]


def shown_as(form: str, value: Any) -> str:
    """A figure as text."""
    if value is None:
        return "–"
    return form.format("yes" if value is True else "no" if value is False else value)


def section(result: dict[str, Any]) -> str:
    """The section on the dashboard, Markdown."""
    rows = [head(), ["---", *["---:"] * (len(COLUMNS) + 1)], *map(cells, result["runs"])]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{BEGIN}\n## The dashboard\n\n{setting(result)}\n\n{table}\n\n{verdicts(result)}\n{END}"


def setting(result: dict[str, Any]) -> str:
    """How it was measured, and where."""
    where = result["machine"]
    text = (
        f"Written by `{result['command']}` on {result['date']}: {where['processor']}, {where['cores']} cores, Python "
        f"{where['python']}; load average {where['load_average_before']:.1f} before, "
        f"{where['load_average_after']:.1f} after.\n\n"
        f"{result['instances']} simulated instances at speed 1, an engine, a dashboard and sessions share the cores: "
        f"up to {result['browsers']} in chromium (1440 x 900), the others ask for the same as an open page and draw "
        f"nothing. {result['seconds']:g} s from the moment every session is live and settled. CPU is that of the "
        "dashboard's process, in shares of one core (with nobody watching: "
        f"{result['cpu_share_without_sessions']:.1%}). Bytes are those on the wire, headers included, with frames of "
        "the web socket. *Oldest data* is the greatest age a viewer saw. Of several sessions the worst is given, of "
        "refreshes and bytes the mean. A fork is the default one of What-if (11 alphas and as it is, 8 seeds, 5 min "
        "ahead), from the click to the first curve, the median of five. A chart is zoomed "
        "before; *kept* means that nodes and range are the same at the end."
    )
    if where["load_average_before"] > BUSY * where["cores"]:
        text += (
            "\n\n**The machine was busy with other work:** times are mostly waits for a processor. CPU, bytes "
            "and layout shift say more."
        )
    return text


def verdicts(result: dict[str, Any]) -> str:
    """The targets, met or not."""
    lines = []
    for run in result["runs"]:
        for target in run["targets"]:
            limit = f"{'≤' if target['at_most'] else '≥'} {target['limit']:,g}"
            verdict = "met" if target["met"] else "**missed**"
            lines.append(
                f"- {run['page']} x {run['sessions']}, {target['name']} {limit}: {target['value']:,.3g}, {verdict}"
            )
    lines += [f"- {name} was left out: {reason}" for name, reason in result["skipped"].items()]
    return "\n".join(lines)


def rewrite(path: Path, result: dict[str, Any]) -> None:
    """Put the section into the page in place of the one before; a new page where there is none."""
    put_section(path, BEGIN, END, section(result))
