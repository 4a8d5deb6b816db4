"""`headway accuracy`: how far the simulator is from a recorded run."""

from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table, say_if_cold


@click.command()
@click.argument("run_dir")
@click.option("--profile", "profile_name", help="GPU or GPU:MODEL of the catalogue, or a calibrated profile's file.")
@as_json
def accuracy(run_dir: str, profile_name: str | None, json_out: bool) -> None:
    """Replay the recorded run in RUN_DIR and compare times.

    Without --profile the run itself must name its GPU and model.
    """
    from control.tuning.accuracy import accuracy as compare
    from control.workload.runs import read_run

    run = read_run(run_dir)
    say_if_cold()
    answer(compare(run, profile_name), json_out, show)


def show(result: dict[str, Any]) -> None:
    """Both sides and the errors, for a person."""
    profile = result["profile"]
    click.echo(f"{result['run']}: {result['requests']:,} requests on {profile['gpus']} x {profile['gpu']}")
    click.echo(f"{profile['model']}, costs {profile['provenance']}: {profile['source']}")
    rows = [["", "measured", "predicted", "error"]]
    for name, measured in result["measured"].items():
        error = result["metrics"].get(error_key(name))
        label, unit = titled(name)
        predicted = number(result["predicted"].get(name), unit)
        rows.append([label, number(measured, unit), predicted, "–" if error is None else f"{100 * error:+.1f} %"])
    print_table(rows)
    for note in result["notes"]:
        click.echo(f"note: {note}")


def error_key(name: str) -> str:
    """Name of a figure's error."""
    from control.tuning.accuracy import error_name

    return error_name(name)


def titled(name: str) -> tuple[str, str]:
    """A figure's name for a person, and its unit."""
    if name == "output_tokens_per_s":
        return "output", "tokens/s"
    if name == "power_w":
        return "power of a GPU", "W"
    if name == "duration_s":
        return "duration", "s"
    kind, what, _ = name.split("_")
    return f"{kind.upper()} {what if what == 'mean' else what.upper()}", "s"
