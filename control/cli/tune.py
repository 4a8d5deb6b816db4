"""`headway tune`: which alpha suits a trace."""

from typing import Any

import click

from control.cli.options import (
    answer,
    as_json,
    fleet_option,
    inputs,
    number,
    print_table,
    seed_option,
    work_options,
)


@click.command()
@fleet_option
@work_options
@click.option("--policy", default="hexgen", show_default=True, help="A policy whose dispatch uses alpha.")
@click.option("--alpha", "current", type=float, default=0.5, show_default=True, help="The alpha in force.")
@click.option("--grid", default="0:1:0.1", show_default=True, help="Alphas: start:stop:step, or by commas.")
@click.option("--resamples", type=int, default=5, show_default=True, help="Bootstrap resamples for the band.")
@click.option("--window", "window_s", type=float, default=600.0, show_default=True, help="Last seconds to replay.")
@seed_option
@as_json
def tune(
    fleet_name: str,
    policy: str,
    current: float,
    grid: str,
    resamples: int,
    window_s: float,
    seed: int,
    json_out: bool,
    **work: Any,
) -> None:
    """Replay a trace over a grid of alpha and find the lowest P95 latency."""
    from control.tuning.alpha import parse_grid
    from control.tuning.offline import tune as tune_offline

    alphas = parse_grid(grid)
    workload, fleet = inputs(fleet_name, seed, work)
    answer(tune_offline(workload, fleet, policy, current, alphas, resamples, window_s, seed), json_out, show_choice)


def show_choice(result: dict[str, Any]) -> None:
    """The curve and the choice for a person."""
    rows = [["alpha", "P95", "band"]]
    for row in result["curve"]:
        mark = " *" if row["alpha"] == result["alpha"] else ""
        band = f"{number(row['low_s'])} to {number(row['high_s'], 's')}"
        rows.append([f"{row['alpha']:.2f}{mark}", number(row["p95_s"], "s"), band])
    print_table(rows)
    for problem in result["problems"]:
        click.echo(f"note: {problem}")
    low, high = 100.0 * result["gain_low"], 100.0 * result["gain_high"]
    click.echo(
        f"alpha {result['alpha']:g} (*): P95 {100.0 * result['gain']:.1f} % below that of alpha "
        f"{result['current_alpha']:g}, between {low:.1f} and {high:.1f} %"
    )
