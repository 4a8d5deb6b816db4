"""`headway bench gateway`: what the gateway costs, beside a bare pass-through and another router."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table, say_if_cold


@click.command("gateway")
@click.option("--rounds", type=int, help="Rounds over all systems; medians are printed.  [default: 5]")
@click.option("--seconds", "stream_s", type=float, help="Seconds of new streams a round.  [default: 10]")
@click.option("--rate", type=float, help="New streams per second.  [default: 200]")
@click.option("--connections", type=int, help="Busy connections, for requests per second.  [default: 32]")
@click.option("--router", help="Command of vllm-router, from its own virtual environment, to compare with.")
@click.option("--quick", is_flag=True, help="One short round at a low rate: whether it runs, not how fast.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Page whose section to rewrite.")
@as_json
def bench_gateway(router: str | None, quick: bool, out: Path | None, json_out: bool, **given: Any) -> None:
    """First chunk, CPU time and requests per second through the gateway, over real sockets."""
    from control.gateway.speed.measure import QUICK, SpeedSettings, measure_gateway
    from control.gateway.speed.page import rewrite

    changes = {name: value for name, value in given.items() if value is not None}
    settings = replace(QUICK if quick else SpeedSettings(), **changes)
    say_if_cold()
    result = measure_gateway(settings, router, lambda text: click.echo(text, err=True))
    if out is not None:
        rewrite(out, result)
    answer(result, json_out, show_gateway)


def show_gateway(result: dict[str, Any]) -> None:
    """The same for a person."""
    from control.gateway.speed.page import COLUMNS, cells

    print_table([["system", *COLUMNS], *(cells(name, row) for name, row in result["systems"].items())])
    for target in result["targets"]:
        limit = f"{'at most' if target['at_most'] else 'at least'} {number(target['limit'])}"
        verdict = "met" if target["met"] else "missed"
        click.echo(f"{target['name']}: {number(target['value'])}, {limit}: {verdict}")
    for name, reason in result["skipped"].items():
        click.echo(f"{name} was left out: {reason}")
