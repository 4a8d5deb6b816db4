"""`headway bench dashboard`: what sessions in a real browser cost, and what they see."""

from pathlib import Path
from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table, say_if_cold


@click.command("dashboard")
@click.option(
    "--page", "pages", multiple=True, help="Page by its name in the address; may be repeated.  [default: fleet]"
)
@click.option("--sessions", type=int, multiple=True, help="Sessions at once; may be repeated.  [default: 1]")
@click.option("--browsers", type=int, default=1, show_default=True, help="Sessions that are drawn in a browser.")
@click.option("--seconds", type=float, default=30.0, show_default=True, help="How long each is measured.")
@click.option("--instances", type=int, default=8, show_default=True, help="8 or a multiple, mixed as in demo-mixed.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Page whose section to rewrite.")
@as_json
def bench_dashboard(
    pages: tuple[str, ...],
    sessions: tuple[int, ...],
    browsers: int,
    seconds: float,
    instances: int,
    out: Path | None,
    json_out: bool,
) -> None:
    """CPU, bytes, age of the data and layout shift of live sessions in chromium (HEADWAY_CHROMIUM names it).

    Sessions beyond --browsers ask for the same as an open page does, and draw nothing: browsers that draw would measure
    each other.
    """
    from control.cli.browsing.measure import FIRST, Asked, measure_dashboard
    from control.cli.browsing.page import rewrite

    asked = Asked(pages or (FIRST,), sessions or (1,), browsers, seconds, instances)
    say_if_cold()
    result = measure_dashboard(asked, lambda text: click.echo(text, err=True))
    if out is not None:
        rewrite(out, result)
    answer(result, json_out, show_dashboard)


def show_dashboard(result: dict[str, Any]) -> None:
    """The same for a person."""
    from control.cli.browsing.page import cells, head

    print_table([head(), *map(cells, result["runs"])])
    for run in result["runs"]:
        for target in run["targets"]:
            limit = f"{'at most' if target['at_most'] else 'at least'} {number(target['limit'])}"
            verdict = "met" if target["met"] else "missed"
            where = f"{run['page']} x {run['sessions']}"
            click.echo(f"{where}, {target['name']}: {number(target['value'])}, {limit}: {verdict}")
    for name, reason in result["skipped"].items():
        click.echo(f"{name} was left out: {reason}")
