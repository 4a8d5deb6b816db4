"""`headway scrape`: what a server, an exporter or a file of metrics says now."""

from dataclasses import fields
from typing import Any

import click

from control.adapters.reading import TIME_FIELDS, GpuReading, Reading
from control.cli.options import as_json, number, print_json, print_table

#: Field -> (what it is, its unit).
FIGURES = {
    "running": ("running", "requests"),
    "waiting": ("waiting", "requests"),
    "swapped": ("swapped", "requests"),
    "kv_used_fraction": ("KV cache in use", "%"),
    "kv_used_tokens": ("KV tokens in use", "tokens"),
    "kv_capacity_tokens": ("KV capacity", "tokens"),
    "prefix_hit_fraction": ("prefix cache hits", "%"),
    "preemptions": ("preemptions", ""),
    "prompt_tokens": ("prompt tokens", "tokens"),
    "generation_tokens": ("generated tokens", "tokens"),
    "requests_finished": ("finished", "requests"),
    "rejections": ("rejected", "requests"),
    "power_w": ("power", "W"),
}
TIMES = {
    "ttft": "TTFT",
    "itl": "ITL",
    "tpot": "TPOT",
    "e2e": "end to end",
    "queue": "queue",
    "prefill": "prefill",
    "decode": "decode",
}


@click.command()
@click.argument("source", metavar="URL|FILE")
@as_json
def scrape(source: str, json_out: bool) -> None:
    """Read metrics of vLLM, SGLang or GPUs from a server (URL) or a FILE, whatever their form.

    URL is a server's or its /metrics page. FILE holds a Prometheus text, what nvidia-smi printed (table, -q, query CSV,
    dmon), or the series a benchmark kept. What is not there is null.
    """
    from control.adapters.scrape import scrape as read

    reading = read(source)
    if reading.is_empty():
        click.echo(f"{source}: no metrics of vLLM, SGLang or a GPU in it (a server that starts has none yet)", err=True)
    if json_out:
        print_json(reading.to_dict())
    else:
        show(reading)


def show(reading: Reading) -> None:
    """The reading for a person: only what is there."""
    rows = [["engine", " ".join(filter(None, (reading.engine, reading.version))) or "–"], ["source", reading.source]]
    rows += [["model", reading.model]] if reading.model else []
    for field, (label, unit) in FIGURES.items():
        value = getattr(reading, field)
        if value is not None:
            rows.append([label, number(value * 100 if unit == "%" else value, unit, 4)])
    print_table(rows)
    show_times(reading)
    show_gpus(reading.gpus)


def show_times(reading: Reading) -> None:
    """Mean and quantiles of the times that are there; in the open bucket only a lower bound is known."""
    rows = [["time", "mean", "P50", "P95"]]
    for field in TIME_FIELDS:
        times = getattr(reading, field)
        if times is not None and times.count > 0:
            quantiles = [("≥ " if times.is_open(q) else "") + number(times.quantile_s(q), "s") for q in (0.5, 0.95)]
            rows.append([TIMES[field], number(times.mean_s(), "s"), *quantiles])
    if len(rows) > 1:
        click.echo()
        print_table(rows)


def show_gpus(gpus: tuple[GpuReading, ...]) -> None:
    """A row a GPU."""
    if not gpus:
        return
    rows = [["GPU", "power", "limit", "energy", "busy", "memory", "of", "temperature"]]
    for gpu in gpus:
        name = " ".join(filter(None, ("" if gpu.index is None else str(gpu.index), gpu.name or gpu.uuid)))
        rows.append([name or "–", *figures_of(gpu)])
    click.echo()
    print_table(rows)


def figures_of(gpu: GpuReading) -> list[str]:
    """Figures of a GPU with their units."""
    values: dict[str, Any] = {field.name: getattr(gpu, field.name) for field in fields(gpu)}
    busy = None if gpu.utilization is None else gpu.utilization * 100
    return [
        number(values["power_w"], "W", 4),
        number(values["power_limit_w"], "W", 4),
        number(values["energy_j"], "J", 4),
        number(busy, "%"),
        number(values["memory_used_mib"], "MiB", 5),
        number(values["memory_total_mib"], "MiB", 5),
        number(values["temperature_c"], "°C"),
    ]
