"""Options that several subcommands share, and how they print."""

import sys
from collections.abc import Callable
from typing import Any

import click
import orjson

from control.config import within
from control.errors import SettingError
from control.jit import is_warm
from control.model.fleet import Fleet
from control.model.workload import Workload

#: Workflows a generator is asked for at most: more do not fit into memory.
MOST_WORKFLOWS = 1_000_000

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*decorators: Decorator) -> Decorator:
    """Several option decorators as one, listed in help in the order given."""

    def apply(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


as_json = click.option("--json", "json_out", is_flag=True, help="Print one JSON object on stdout.")

fleet_option = click.option(
    "--fleet",
    "fleet_name",
    default="demo-mixed",
    show_default=True,
    help="Fleet file (TOML) or built-in name.",
)

work_options = together(
    click.option("--trace", "trace_path", help="Trace file, or a generator: text2sql, agents, demo-mixed ..."),
    click.option("--format", "trace_format", help="Format of the trace where its header does not tell."),
    click.option("--workflows", type=int, default=400, show_default=True, help="How many, from a generator."),
    click.option("--rate", type=float, help="Workflows per second. Absent: recorded times, else 0.1."),
    click.option("--arrivals", default="poisson", show_default=True, help="poisson, gamma (with --cv) or recorded."),
    click.option("--cv", type=float, default=1.0, show_default=True, help="Gaps' coefficient of variation."),
    click.option("--slo-scale", type=float, default=1.0, show_default=True, help="Factor on every SLO."),
)

seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Seed of all randomness.")


def read_work(
    trace_path: str | None,
    trace_format: str | None,
    workflows: int,
    rate: float | None,
    arrivals: str,
    cv: float,
    slo_scale: float,
    seed: int,
) -> Workload:
    """The workload the options describe, arranged for a run.

    Raises:
        SettingError: no trace was named, or an option is out of bounds.
        TraceError: the trace cannot be read.
    """
    from control.workload.arrivals import arrange
    from control.workload.generate import generate, generator_names
    from control.workload.load import load_trace

    if trace_path is None:
        raise SettingError(f"--trace is missing: expected a file or one of {', '.join(generator_names())}")
    if trace_path in generator_names():
        within("--workflows", workflows, 1, MOST_WORKFLOWS)
        work = generate(trace_path, workflows, seed, rate)
        if arrivals == "poisson":
            return arrange(work, seed=seed, slo_scale=slo_scale)
    else:
        work = load_trace(trace_path, trace_format)
    return arrange(work, rate=rate, process=arrivals, cv=cv, seed=seed, slo_scale=slo_scale)


def inputs(fleet_name: str, seed: int, work: dict[str, Any]) -> tuple[Workload, Fleet]:
    """The workload and the fleet that the options describe, read before anything compiles; real servers are simulated.

    Raises:
        FleetError: the fleet cannot be read.
        SettingError, TraceError: see read_work.
    """
    from control.model.fleet import load_fleet
    from control.tuning.imagine import unplugged

    fleet = unplugged(load_fleet(fleet_name))
    workload = read_work(seed=seed, **work)
    say_if_cold()
    return workload, fleet


def say_if_cold() -> None:
    """Tell on stderr that the first run compiles, where it will."""
    if not is_warm():
        say_it_compiles()


def say_it_compiles() -> None:
    """Tell on stderr what takes so long."""
    click.echo("compiling the simulator (once; a minute or two) ...", err=True)


def answer(result: dict[str, Any], json_out: bool, show: Callable[[dict[str, Any]], None]) -> None:
    """The result of a command: one JSON object with --json, else what `show` prints for a person."""
    if json_out:
        print_json(result)
    else:
        show(result)


def print_json(value: Any) -> None:
    """One JSON object on stdout, numbers at full precision, NumPy scalars as numbers."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def number(value: float | None, unit: str = "", digits: int = 3) -> str:
    """A figure with significant digits and its unit; a dash for what was not measured."""
    if value is None:
        return "–"
    text = f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"
    return f"{text} {unit}".strip()


def print_table(rows: list[list[str]]) -> None:
    """Rows of text with aligned columns; the first row is the head."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)),
        ]
        click.echo("  ".join(cells).rstrip())
