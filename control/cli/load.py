"""`headway load`: a trace or scenario as real traffic against a server or the gateway."""

import asyncio
import math
import signal
import sys
from pathlib import Path
from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table, read_work, seed_option, work_options
from control.config import within
from control.errors import InputError
from control.model.workload import Workload


@click.command()
@click.option("--url", required=True, help="Address of the gateway, or of any OpenAI-compatible server.")
@work_options
@click.option("--scenario", help="A generator or scenario by name, in place of --trace.")
@seed_option
@click.option("--model", help="Served model, where there are several.")
@click.option("--fleet", "fleet_name", help="Derive SLOs that the trace does not state, as for this fleet.")
@click.option("--policy-headers/--no-policy-headers", default=True, show_default=True, help="Send x-headway-*.")
@click.option("--duration", "duration_s", type=float, help="Start no workflow after this many s.")
@click.option("--timeout-s", type=float, default=600.0, show_default=True, help="Time a call may take, s.")
@click.option("--out", help="Also write the report to this file (JSON).")
@as_json
def load(
    url: str,
    scenario: str | None,
    seed: int,
    fleet_name: str | None,
    out: str | None,
    json_out: bool,
    model: str | None,
    policy_headers: bool,
    duration_s: float | None,
    timeout_s: float,
    **work: Any,
) -> None:
    """Replay a trace as traffic: open loop between workflows, stages in order within them.

    Ctrl-C ends it with the report so far.
    """
    within("--timeout-s", timeout_s, 0.001, 1e6)
    within("--duration", math.inf if duration_s is None else duration_s, 0.001, math.inf)
    if scenario is not None:
        if work["trace_path"] is not None:
            raise InputError("--scenario and --trace: expected one of them")
        work["trace_path"] = scenario
    workload = with_slos(read_work(seed=seed, **work), fleet_name)
    settings = {"seed": seed, "headers": policy_headers, "duration_s": duration_s or math.inf}
    result = run(drive(url, model, workload, timeout_s, settings))
    if out:
        write(result, out)
    answer(result, json_out, show)


def with_slos(workload: Workload, fleet_name: str | None) -> Workload:
    """The workload with the SLOs derived that it leaves open, as the simulator derives them on a fleet."""
    if fleet_name is None:
        return workload
    from control.model.fleet import load_fleet
    from control.twin.pack import build_world

    world = build_world(workload, load_fleet(fleet_name), "rr-fcfs")
    workflows = workload.workflows.copy()
    workflows["slo_s"] = world.workflows["slo_s"]
    return workload._replace(workflows=workflows)


def run(work: Any) -> Any:
    """Run on uvloop where it is there; it is not on Windows."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


async def drive(
    url: str, model: str | None, workload: Workload, timeout_s: float, settings: dict[str, Any]
) -> dict[str, Any]:
    """Drive the load and report. InputError: nobody answers there as an OpenAI-compatible server does."""
    from control.adapters.completions import session
    from control.adapters.driver import Drive
    from control.adapters.driver_report import report
    from control.adapters.identify import identify, root_of

    root = root_of(url)
    async with session(timeout_s) as client:
        served = (await identify(client, root, model)).model
        driven = Drive(client, root, served, workload, **settings)
        await driven.prepare()
        with click.progressbar(length=len(workload.workflows), file=sys.stderr, item_show_func=words) as bar:
            task = asyncio.create_task(driven.run(lambda d: show_progress(bar, d)))
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
            await asyncio.wait([task])
        return report(driven)


def show_progress(bar: Any, driven: Any) -> None:
    """Move the bar to the workflows that ended."""
    ended = sum(flow.done or flow.failed for flow in driven.flows)
    bar.update(ended - bar.pos, driven)
    bar.render_progress()


def words(driven: Any) -> str | None:
    """How far a run is, beside the bar."""
    if driven is None:
        return None
    failed = sum(flow.failed for flow in driven.flows)
    done = sum(flow.done for flow in driven.flows)
    rate = done / driven.now_s if driven.now_s > 0 else 0.0
    return f"{done} done, {failed} failed, {driven.in_flight} calls in flight, {rate:.2f} workflows/s"


def write(result: dict[str, Any], out: str) -> None:
    """The report as a file, whole or not at all. InputError where it cannot be written."""
    import orjson

    target = Path(out)
    partial = target.with_name(target.name + ".part")
    try:
        partial.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
        partial.replace(target)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}") from error


def show(result: dict[str, Any]) -> None:
    """The report for a person."""
    flows, calls = result["workflows"], result["calls"]
    click.echo(f"{result['trace']} against {result['url']} ({result['model']}), {number(result['duration_s'], 's')}")
    counts = ", ".join(f"{flows[name]:,} {name}" for name in ("started", "done", "failed", "unfinished"))
    click.echo(f"workflows: {counts} of {flows['planned']:,}")
    click.echo(f"calls: {calls['done']:,} done, {calls['failed']:,} failed")
    rows = [["", "mean", "P50", "P95", "P99"]]
    for name in ("workflow_latency", "ttft", "tpot", "itl", "e2e", "lateness"):
        part = result[f"{name}_s"]
        title = name.upper() if len(name) <= 4 else name.replace("_", " ")
        rows.append([title, *(number(part[key], "s") for key in ("mean", "p50", "p95", "p99"))])
    print_table(rows)
    share = result["slo_attainment"]
    click.echo(f"SLO attainment {number(None if share is None else 100 * share, '%')}")
    click.echo(f"output {number(result['output_tokens_per_s'], 'tokens/s')}")
    for kind, told in result["failures"].items():
        click.echo(f"failed, {kind}: {told['count']:,}, the first: {told['first']}")
