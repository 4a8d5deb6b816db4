"""`headway whatif`: run an exported fork again."""

from pathlib import Path
from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table, say_if_cold
from control.errors import InputError

LARGEST_MB = 512
SHOWN = ("p50_s", "p95_s", "slo_attainment", "slo_debt_s", "throughput_wps", "tokens_per_joule", "power_w")


@click.command()
@click.argument("file")
@as_json
def whatif(file: str, json_out: bool) -> None:
    """Run the fork in FILE again: the same numbers, wherever it runs.

    FILE comes from Export on the page What-if. Its settings, seeds and horizon are its own; what is printed says
    whether every figure and line equals the stored one.
    """
    from control.tuning.whatif.file import load_fork
    from control.tuning.whatif.lab import Lab

    given, spec, stored, about = load_fork(read(file), file)
    say_if_cold()
    result = Lab(given, spec).evaluate(progress)
    click.echo("", err=True)
    told = {"file": file, "about": about, "spec": spec.as_dict(), **result}
    told["same"] = result["settings"] == stored.get("settings")
    answer(told, json_out, show)


def read(file: str) -> bytes:
    """The bytes of the file.

    Raises:
        InputError: it cannot be read, or is too large to be a fork.
    """
    path = Path(file)
    try:
        if not path.is_file() and path.exists():
            raise InputError(f"{file or '(an empty name)'}: not a regular file: expected a file from Export")
        if path.stat().st_size > LARGEST_MB * 2**20:
            raise InputError(f"{file}: larger than {LARGEST_MB} MB: no fork")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def progress(so_far: dict[str, Any]) -> None:
    """How far it is."""
    click.echo(f"\r{100 * so_far['progress']:3.0f} % of {so_far['settings'][-1]['name']:40.40}", err=True, nl=False)


def show(told: dict[str, Any]) -> None:
    """The settings for a person."""
    units = {"p50_s": "s", "p95_s": "s", "slo_debt_s": "s", "throughput_wps": "/s", "power_w": "W"}
    rows = [["setting", "P50", "P95", "80 % band", "attainment", "debt", "workflows", "tokens/J", "power"]]
    for setting in told["settings"]:
        if setting["problem"]:
            rows.append([setting["name"], setting["problem"], *[""] * 7])
            continue
        found = {name: setting["figures"][name] for name in SHOWN}
        cells = [number(found[name]["mean"], units.get(name, "")) for name in SHOWN]
        band = f"{number(found['p95_s']['low'])} to {number(found['p95_s']['high'], 's')}"
        mark = " *" if setting["index"] == told["best"] else ""
        rows.append([setting["name"] + mark, cells[0], cells[1], band, *cells[2:]])
    print_table(rows)
    same = "equal to the stored ones" if told["same"] else "NOT equal to the stored ones"
    ahead = f"{told['spec']['minutes']:g} min ahead, {told['spec']['seeds']} seeds, {told['spec']['arrivals']} arrivals"
    click.echo(f"{ahead}; * is the best; figures are {same}")
