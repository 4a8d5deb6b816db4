"""`headway rehearse`: the live tuner on a scenario, without waiting for the clock."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from control.cli.options import as_json, number, print_json, print_table, say_if_cold
from control.errors import SettingError

if TYPE_CHECKING:
    from storage.open import Store

MOST_MINUTES = 24 * 60


@click.command()
@click.option("--scenario", "name", default="step-load", show_default=True, help="A scenario by its name.")
@click.option("--minutes", type=int, default=40, show_default=True, help="Arrivals last so long, simulated.")
@click.option("--alpha", type=float, default=0.5, show_default=True, help="Alpha at the start, and of the fixed run.")
@click.option("--form", help="Form of the dispatch score: paper or artifact. Absent: the scenario's.")
@click.option("--seeds", type=int, default=1, show_default=True, help="Seeds 0 to N-1.")
@as_json
def rehearse(name: str, minutes: int, alpha: float, form: str | None, seeds: int, json_out: bool) -> None:
    """Auto mode against a fixed alpha, on the same arrivals, seed by seed."""
    from control.config import within
    from control.policy.codes import policy_codes
    from control.workload.scenarios import scenario

    if not 1 <= minutes <= MOST_MINUTES:
        raise SettingError(f"--minutes = {minutes}: expected a whole number from 1 to {MOST_MINUTES}")
    if not 1 <= seeds <= 1000:
        raise SettingError(f"--seeds = {seeds}: expected a whole number from 1 to 1000")
    within("--alpha", alpha, 0.0, 1.0)
    chosen = form or scenario(name).form
    policy_codes("hexgen", chosen)
    say_if_cold()
    pairs = []
    for seed in range(seeds):
        click.echo(f"seed {seed}", err=True)
        pairs.append(pair(name, chosen, minutes, seed, alpha))
    result = {"scenario": name, "form": chosen, "minutes": minutes, "alpha": alpha, "runs": pairs}
    result["gained"] = sum(1 for run in pairs if run["gain"] > 0.0)
    if json_out:
        print_json(result)
    else:
        show(result)


def pair(name: str, form: str, minutes: int, seed: int, alpha: float) -> dict[str, Any]:
    """`minutes` of a scenario under a fixed alpha and under the tuner."""
    from control.engine.rehearsal import rehearse as live_through
    from control.engine.source import Source
    from control.model.fleet import load_fleet
    from control.tuning.decide import AUTO, OFF
    from control.workload.scenarios import scenario

    plan = replace(scenario(name), form=form, until_s=60.0 * minutes)
    source, fleet = Source(name, seed, scenario=plan), load_fleet(plan.fleet)
    runs = {}
    for mode in (OFF, AUTO):
        with scratch_store() as store:
            runs[mode] = live_through(source, fleet, store, mode, alpha=alpha)
    fixed_s, auto_s = runs[OFF].p95_s, runs[AUTO].p95_s
    if fixed_s is None or auto_s is None:
        raise SettingError("--minutes: too few for any workflow to arrive")
    return {
        "seed": seed,
        "workflows": len(runs[AUTO].latencies_s),
        "fixed_p95_s": fixed_s,
        "auto_p95_s": auto_s,
        "gain": 1.0 - auto_s / fixed_s,
        "moves": [move._asdict() for move in runs[AUTO].moves],
    }


@contextmanager
def scratch_store() -> Iterator["Store"]:
    """A store that is gone afterwards, its lease held."""
    from storage import lease
    from storage.open import open_store

    with tempfile.TemporaryDirectory(prefix="headway-") as folder:
        store = open_store(str(Path(folder) / "rehearsal.db"))
        try:
            lease.acquire(store, "rehearsal")
            yield store
        finally:
            store.close()


def show(result: dict[str, Any]) -> None:
    """The seeds for a person."""
    rows = [["seed", "workflows", "P95 fixed", "P95 auto", "gain", "alpha over time"]]
    for run in result["runs"]:
        moves = ", ".join(f"{m['alpha']:.2f} at {m['at_s'] / 60.0:.0f} min" for m in run["moves"]) or "unchanged"
        figures = [number(run["fixed_p95_s"], "s"), number(run["auto_p95_s"], "s"), f"{100 * run['gain']:.1f} %"]
        rows.append([str(run["seed"]), str(run["workflows"]), *figures, moves])
    print_table(rows)
    click.echo(
        f"{result['scenario']}, {result['form']} form, {result['minutes']} min: auto mode gained P95 over alpha "
        f"{result['alpha']:g} in {result['gained']} of {len(result['runs'])} seeds"
    )
