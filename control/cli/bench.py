"""`headway bench`: speeds, measured as CPU time inside one process."""

from typing import Any

import click

from control.cli.options import answer, as_json, number, print_table


@click.group()
def bench() -> None:
    """Measure how fast Headway is."""


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
