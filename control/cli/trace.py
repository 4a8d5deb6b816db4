"""`headway trace`: what is in a trace, generate one, import one into Headway's own format."""

from pathlib import Path
from typing import Any

import click

from control.cli.options import MOST_WORKFLOWS, answer, as_json, number, print_table, seed_option
from control.config import within
from control.errors import InputError
from control.model.workload import Workload


@click.group()
def trace() -> None:
    """Describe, generate and import traces."""


@trace.command("describe")
@click.argument("path")
@click.option("--format", "trace_format", help="Format of the trace where its header does not tell.")
@as_json
def describe_trace(path: str, trace_format: str | None, json_out: bool) -> None:
    """Say what is in a trace file."""
    from control.workload.describe import describe
    from control.workload.load import load_trace

    answer(describe(load_trace(path, trace_format)), json_out, show_facts)


def show_facts(facts: dict[str, Any]) -> None:
    """The facts of a trace for a person."""
    print_table(
        [
            ["trace", ""],
            ["format", facts["format"]],
            ["workflows", f"{facts['workflows']:,}"],
            ["calls", f"{facts['calls']:,}"],
            ["input", f"{facts['input_tokens']:,} tokens"],
            ["output", f"{facts['output_tokens']:,} tokens"],
            ["span", number(facts["span_s"], "s")],
        ]
    )
    for problem in facts["problems"]:
        click.echo(f"note: {problem}")


@trace.command("generate")
@click.argument("name")
@click.option("--n", "n", type=int, default=400, show_default=True, help="Number of workflows.")
@click.option("--rate", type=float, help="Workflows per second (Poisson).")
@seed_option
@click.option("--out", required=True, help="File to write.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@as_json
def generate_trace(name: str, n: int, rate: float | None, seed: int, out: str, force: bool, json_out: bool) -> None:
    """Generate a trace: NAME is text2sql, agents, coding-agents or a scenario."""
    from control.workload.generate import generate

    within("--n", n, 1, MOST_WORKFLOWS)
    save(generate(name, n, seed, rate), out, force, json_out)


@trace.command("import")
@click.argument("path")
@click.option("--format", "trace_format", help="Format of the trace where its header does not tell.")
@click.option("--out", required=True, help="File to write.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@as_json
def import_trace(path: str, trace_format: str | None, out: str, force: bool, json_out: bool) -> None:
    """Turn a trace of any known format into Headway's own (JSON lines)."""
    from control.workload.load import load_trace

    save(load_trace(path, trace_format), out, force, json_out)


def save(workload: Workload, out: str, force: bool, json_out: bool) -> None:
    """Write a trace whole or not at all, and say what was written.

    Raises:
        InputError: the file is there and --force was not given, or it cannot be written.
    """
    from control.workload.describe import describe
    from control.workload.write import write_trace

    target = Path(out)
    if target.exists() and not force:
        raise InputError(f"{out}: the file exists; pass --force to replace it")
    partial = target.with_name(target.name + ".part")
    try:
        write_trace(workload, str(partial))
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{out}: cannot be written: {error.strerror or error}") from error
    answer(describe(workload) | {"path": out}, json_out, show_written)


def show_written(facts: dict[str, Any]) -> None:
    """What was written, for a person."""
    click.echo(f"wrote {facts['workflows']:,} workflows, {facts['calls']:,} calls to {facts['path']}")
