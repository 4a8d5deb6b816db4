"""`headway bench`: speeds, measured as CPU time inside one process."""

from typing import Any

import click

from control.cli.bench_dashboard import bench_dashboard
from control.cli.bench_gateway import bench_gateway
from control.cli.options import answer, as_json, number, print_table, say_if_cold


@click.group()
def bench() -> None:
    """Measure how fast Headway is."""


bench.add_command(bench_dashboard)
bench.add_command(bench_gateway)


@bench.command("twin")
@click.option("--instances", type=int, default=4, show_default=True)
@click.option("--requests", type=int, default=10_000, show_default=True)
@click.option("--runs", type=int, default=7, show_default=True, help="Measured runs; the median is printed.")
@as_json
def bench_twin(instances: int, requests: int, runs: int, json_out: bool) -> None:
    """Simulated requests per CPU second on the workload other simulators were measured on."""
    from control.tuning.speed import measure_twin

    answer(measure_twin(instances, requests, runs), json_out, show_speed)


def show_speed(result: dict[str, Any]) -> None:
    """The speeds for a person."""
    print_table(
        [
            ["twin", "value"],
            ["requests per CPU second", number(result["requests_per_cpu_s"])],
            ["events per CPU second", number(result["events_per_cpu_s"])],
            ["first call (compile or load)", number(result["jit_compile_s"], "s")],
            ["load of compiled kernels", number(result["reload_s"], "s")],
        ]
    )


@bench.command("tune")
@click.option("--runs", type=int, default=5, show_default=True, help="Tuning runs; the median is printed.")
@click.option("--ticks", type=int, default=200, show_default=True, help="Ticks of 100 ms with the tuner and without.")
@as_json
def bench_tune(runs: int, ticks: int, json_out: bool) -> None:
    """Tuning alpha on ten minutes of demo-mixed, and what the live loop's ticks feel of it."""
    from control.cli.rehearse import scratch_store
    from control.config import within
    from control.engine.speed import measure_tuning

    within("--runs", runs, 1, 1000)
    within("--ticks", ticks, 1, 100_000)
    say_if_cold()
    with scratch_store() as store:
        answer(measure_tuning(store, runs, ticks), json_out, show_tuning_speed)


def show_tuning_speed(result: dict[str, Any]) -> None:
    """The same for a person."""
    quiet, busy = result["tick_ms"], result["tick_while_tuning_ms"]
    what = f"{result['calls']:,} calls, {result['alphas']} alphas x {result['resamples']} resamples"
    click.echo(f"tuning on {what}: {number(result['wall_s'], 's')} wall, {number(result['cpu_s'], 's')} CPU")
    print_table(
        [
            ["ticks", "median", "P99", "most"],
            ["without the tuner", *(number(quiet[key], "ms") for key in ("median", "p99", "most"))],
            ["while it runs", *(number(busy[key], "ms") for key in ("median", "p99", "most"))],
        ]
    )


FORK_WORDS = {"fork_s": "copy", "first_curve_s": "first curve", "all_s": "all curves", "cpu_s": "CPU"}


@bench.command("fork")
@click.option("--instances", type=int, default=8, show_default=True, help="8 or a multiple.")
@click.option("--settings", type=int, default=11, show_default=True, help="Values of alpha.")
@click.option("--seeds", type=int, default=8, show_default=True, help="Draws of what may arrive.")
@click.option("--minutes", type=float, default=5.0, show_default=True, help="Ahead, simulated.")
@click.option("--runs", type=int, default=5, show_default=True, help="Forks; medians are printed.")
@as_json
def bench_fork(instances: int, settings: int, seeds: int, minutes: float, runs: int, json_out: bool) -> None:
    """From the live state to the first curve of a what-if, and to all of them."""
    from control.config import within
    from control.engine.fork_speed import measure_fork

    within("--instances", instances, 8, 1024)
    within("--settings", settings, 2, 40)
    within("--seeds", seeds, 1, 32)
    within("--minutes", minutes, 1, 30)
    within("--runs", runs, 1, 100)
    say_if_cold()
    answer(measure_fork(instances, settings, seeds, minutes, runs), json_out, show_fork_speed)


def show_fork_speed(result: dict[str, Any]) -> None:
    """The same for a person."""
    rows = [["fork", "value"]]
    for name, words in (
        ("fork_s", "copy"),
        ("first_curve_s", "first curve"),
        ("all_s", "all curves"),
        ("cpu_s", "CPU"),
    ):
        rows.append([words, number(result[name], "s")])
    print_table(rows)
