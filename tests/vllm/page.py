"""A race of real servers as a section of the page of benchmarks."""

import statistics
from pathlib import Path
from typing import Any

from control.gateway.speed.page import put_section

BEGIN, END = "<!-- race of real servers: begin -->", "<!-- race of real servers: end -->"
FIGURES = ("mean", "predicted", "error", "P95", "predicted", "error")
HEADS = ("run", "policy", "costs of small", "costs of med", "workflows", *FIGURES)


def rewrite(path: Path, report: dict[str, Any]) -> None:
    """Put the section into the page in place of the one before."""
    put_section(path, BEGIN, END, section(report))


def section(report: dict[str, Any]) -> str:
    """The section, Markdown."""
    rows = [list(HEADS), ["---:", "---", *["---:"] * (len(HEADS) - 2)], *map(cells, report["runs"])]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    parts = ["## Predicted against measured: two real servers", setting(report), table, errors(report)]
    return f"{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}"


def setting(report: dict[str, Any]) -> str:
    """How it was measured, and where."""
    where = report["machine"]
    return (
        f"Written by `{report['command']}` on {report['date']}: {where['processor']}, {where['cores']} cores, Python "
        f"{where['python']}.\n\nTwo vLLM servers of unequal models, gateway and load driver share the cores. Both "
        f"servers were calibrated before, each with the other idle; the text-to-SQL shaped load comes at "
        f"{report['rate_wps']:.2f} workflows/s. What they cost under load was learned by the gateway's engine in runs "
        "before the first, and from run to run: *costs* are the factors on prefill and decode of the calibrated "
        "profiles under which a run was predicted before it began."
    )


def cells(run: dict[str, Any]) -> list[str]:
    """One run."""
    costs = ["x{:.2f}, x{:.2f}".format(*run["scales"].get(name, (1.0, 1.0))) for name in ("small", "med")]
    told = [f"{run['seed']}", run["policy"], *costs, f"{run['workflows']['done']:,}"]
    for name in ("mean_s", "p95_s"):
        figures = (run[name], "{:.2f} s"), (run["predicted"][name], "{:.2f} s"), (run["error"].get(name), "{:+.1%}")
        told += ["–" if value is None else form.format(value) for value, form in figures]
    return told


def errors(report: dict[str, Any]) -> str:
    """Medians over the runs of each policy."""
    lines = []
    for policy, found in report["verdict"].items():
        if not isinstance(found, dict) or not found["whole"]:
            continue
        runs = [run["error"] for run in report["runs"] if run["policy"] == policy and not run["ended_early"]]
        sizes = [statistics.median(abs(run[name]) for run in runs) for name in ("mean_s", "p95_s")]
        of = found["median_error"]
        lines.append(
            f"- {policy}, median of {found['whole']} runs: mean {of['mean_s']:+.1%}, P95 {of['p95_s']:+.1%}; of their "
            f"sizes: {sizes[0]:.1%} and {sizes[1]:.1%}."
        )
    return "\n".join(lines)
