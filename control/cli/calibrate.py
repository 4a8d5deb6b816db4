"""`headway calibrate`: measure a server and write a profile that the simulator and the scheduler run on."""

import asyncio
import datetime
import sys
from pathlib import Path
from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table
from control.config import within
from control.errors import InputError

NOISY = 0.15  # difference of repeated points from which the machine counts as busy


@click.command()
@click.option("--url", required=True, help="Address of an OpenAI-compatible server, such as vLLM.")
@click.option("--out", help="File to write the profile to.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.option("--model", help="Served model, where there are several.")
@click.option("--gpu", default="server", show_default=True, help="Its hardware; the power of a catalogue GPU is known.")
@click.option("--gpus", type=int, default=1, show_default=True, help="GPUs of the server.")
@click.option("--max-num-seqs", type=int, help="The server's setting, where it does not state it.")
@click.option("--max-num-batched-tokens", type=int, help="Same.")
@click.option("--budget-s", type=float, default=120.0, show_default=True, help="Time to measure, s.")
@as_json
def calibrate(out: str | None, force: bool, json_out: bool, **options: Any) -> None:
    """Measure prefill, decode and both together on an idle server, and fit its profile."""
    from control.model.calibrated import as_fields, write_profile

    within("--budget-s", options["budget_s"], 2.0, 86_400.0)
    within("--gpus", options["gpus"], 1, 64)
    if out and Path(out).exists() and not force:
        raise InputError(f"{out}: the file exists; pass --force to replace it")
    found, facts = asyncio.run(measured(**options))
    if out:
        write_profile(found, out)
    answer({"profile": as_fields(found), "fit": found.fit, "path": out, **facts}, json_out, show)


async def measured(
    url: str,
    model: str | None,
    gpu: str,
    gpus: int,
    max_num_seqs: int | None,
    max_num_batched_tokens: int | None,
    budget_s: float,
) -> tuple[Any, dict[str, Any]]:
    """The profile of the server at `url`, and how the measuring went.

    Raises:
        InputError: nobody answers there as an OpenAI-compatible server does.
        SettingError: too little was measured.
    """
    from control.adapters.completions import session
    from control.adapters.identify import identify, root_of
    from control.adapters.probe import Probe
    from control.tuning.calibrate import calibrate as fit

    root = root_of(url)
    async with session(timeout_s=max(60.0, budget_s)) as client:
        limits = await identify(client, root, model)
        limits = limits._replace(
            max_num_seqs=max_num_seqs or limits.max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens or limits.max_num_batched_tokens,
        )
        with click.progressbar(length=100, label="calibrating", file=sys.stderr) as bar:
            told = await Probe(client, root, limits, budget_s).measure(lambda _, share: reach(bar, share))
            reach(bar, 1.0)
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    notes = [*said_of_noise(told.noise), *said_of_gpu(gpu)]
    found = fit(told.points, limits, gpu, now, gpus)
    found.notes.extend(notes)
    facts = {"points": len(told.points), "rounds": told.rounds, "seconds": told.seconds, "noise": told.noise}
    return found, facts | {"skipped": told.skipped}


def reach(bar: Any, share: float) -> None:
    """Move a bar of 100 on to `share`."""
    bar.update(max(0, min(100, int(100 * share)) - bar.pos))


def said_of_noise(noise: float) -> list[str]:
    """What the repeated points say of the machine."""
    return [f"noise: repeated points differ by {100 * noise:.0f} %; was the server idle?"] if noise > NOISY else []


def said_of_gpu(gpu: str) -> list[str]:
    """Where the power of this hardware comes from."""
    from control.model.hardware import gpu_names

    return [] if gpu in gpu_names() else [f"power of {gpu!r} is not known: it counts as 0 W"]


def show(result: dict[str, Any]) -> None:
    """What was fitted and how well, for a person."""
    profile, rows = result["profile"], [["", "points", "mean error", "P95", "left out"]]
    click.echo(f"{profile['model']} on {profile['gpu']}, vLLM {profile['engine']['version'] or 'unknown'}")
    for name, part in result["fit"].items():
        if not isinstance(part, dict):
            continue
        errors = [f"{100 * part[key]:.1f} %" for key in ("mean_error", "p95_error", "leave_one_out_error")]
        rows.append([name, str(part["points"]), *errors])
    print_table(rows)
    for regime in ("decode", "mixed"):
        costs = {name.removesuffix("_ms"): v for name, v in profile[regime].items() if isinstance(v, float)}
        click.echo(f"{regime}: " + ", ".join(f"{name} {number(value, 'ms', 4)}" for name, value in costs.items()))
    click.echo(f"a request outside the engine: {number(result['fit']['request_ms'], 'ms')}")
    click.echo(f"{result['rounds']} rounds in {number(result['seconds'], 's')}, noise {100 * result['noise']:.1f} %")
    for note in profile["notes"]:
        click.echo(f"note: {note}")
    if result["path"]:
        click.echo(f"wrote {result['path']}: name it as `profile` in a fleet file")
