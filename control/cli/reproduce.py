"""`headway reproduce`: the published experiments again, beside the authors' own figures."""

from typing import Any

import click

from control.cli.options import as_json, number, print_json, print_table, seed_option
from control.cli.published import numbers, read_times, read_trace, source_options
from control.cli.report import report
from control.cli.reproduce_conserve import conserve


@click.group()
def reproduce() -> None:
    """Run the published experiments again."""


reproduce.add_command(report)
reproduce.add_command(conserve)


@reproduce.command("hexgen")
@source_options
@click.option(
    "--fleet", default="hexgen-hetero-1", show_default=True, help="hexgen-hetero-1, hexgen-hetero-2, hexgen-homo."
)
@click.option("--rate", "rates", default="0.5", show_default=True, help="Workflows per second; several: 0.5,1")
@click.option("--alpha", "alphas", help="0 to 1; several: 0,0.1,0.2. Absent: the authors' own, else 0.1.")
@seed_option
@as_json
def hexgen(
    trace_path: str | None,
    profile_path: str | None,
    fleet: str,
    rates: str,
    alphas: str | None,
    seed: int,
    json_out: bool,
) -> None:
    """HexGen-Flow: its schedulers in the mode of the authors' simulator."""
    from control.tuning.reproduce_hexgen import artifact_fleet, reproduce_hexgen

    result = reproduce_hexgen(
        read_trace(trace_path, seed),
        artifact_fleet(fleet),
        read_times(profile_path),
        numbers("--rate", rates),
        numbers("--alpha", alphas) if alphas is not None else None,
        seed,
    )
    if json_out:
        print_json(result)
    else:
        show_hexgen(result)


def show_hexgen(result: dict[str, Any]) -> None:
    """The runs for a person, and how they compare with the reference."""
    click.echo(
        f"{result['trace']}: {result['workflows']:,} workflows, {result['calls']:,} calls on "
        f"{result['runs'][0]['fleet']}; times from {result['profile']}; base SLO {result['base_slo_s']:.3f} s"
    )
    head = ["policy", "rate", "alpha", "P95 s", "reference", "workflows/s", "reference", "mean s", "at 5 x SLO"]
    print_table([head, *(_run_row(run, result["reference"]) for run in result["runs"])])
    for problem in result["problems"]:
        click.echo(f"note: {problem}")


def _run_row(run: dict[str, Any], reference: list[dict[str, Any]]) -> list[str]:
    """A line of the table."""
    key = ("policy", "rate", "alpha")
    known = {row["figure"]: row["reference"] for row in reference if all(row[k] == run[k] for k in key)}
    return [
        run["policy"],
        f"{run['rate']:g}",
        number(run["alpha"]),
        f"{run['p95_s']:.1f}",
        number(known.get("p95_s"), digits=4),
        f"{run['throughput_wps']:.4f}",
        number(known.get("throughput_wps"), digits=4),
        f"{run['mean_s']:.1f}",
        f"{100 * run['attainment']['5']:.1f} %",
    ]
