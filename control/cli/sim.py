"""`headway sim` and `headway compare`: a trace through the twin, under one policy or several."""

from typing import Any

import click

from control.cli.options import (
    answer,
    as_json,
    fleet_option,
    inputs,
    number,
    print_table,
    seed_option,
    work_options,
)
from control.cli.rules import rule_options, taken
from control.errors import SettingError


@click.command()
@fleet_option
@work_options
@click.option("--policy", default="hexgen", show_default=True, help="Scheduling policy.")
@rule_options
@seed_option
@as_json
def sim(fleet_name: str, policy: str, seed: int, json_out: bool, **work: Any) -> None:
    """Run a trace through the simulator under one policy."""
    from control.policy.rules import policy_table
    from control.tuning.run import run

    rule = taken(work)
    policy_table(policy, *rule)
    workload, fleet = inputs(fleet_name, seed, work)
    answer(run(workload, fleet, policy, seed, *rule), json_out, show_run)


def show_run(run: dict[str, Any]) -> None:
    """The figures of one run for a person."""
    click.echo(f"{run['trace']} on {run['fleet']}, policy {run['policy']}, alpha {run['alpha']:g}{variant(run)}")
    causes = ", ".join(f"{cause} {n:,}" for cause, n in run["refused_by_cause"].items())
    refused = f"{run['refused']:,} refused" + (f" ({causes})" if causes else "")
    click.echo(f"{run['workflows']:,} workflows, {run['calls']:,} calls: {run['completed']:,} completed, {refused}")
    print_table(
        [
            ["", "value"],
            ["latency P50", number(run["p50_s"], "s")],
            ["latency P95", number(run["p95_s"], "s")],
            ["latency P99", number(run["p99_s"], "s")],
            ["TTFT P95", number(run["ttft_p95_s"], "s")],
            ["throughput", number(run["throughput_wps"], "workflows/s")],
            ["SLO attainment", number(percent(run["slo_attainment"]), "%")],
            ["SLO debt", number(run["slo_debt_s"], "s")],
            ["energy", number(run["energy_j"] / 1000.0, "kJ")],
            ["tokens per joule", number(run["tokens_per_joule"], "tok/J")],
            ["preemptions", f"{run['preemptions']:,}"],
            *([["KV transfers", f"{run['kv_transfers']:,}"]] if run["kv_transfers"] else []),
        ]
    )


def variant(run: dict[str, Any]) -> str:
    """What of a run's rules is not the default, in words: its form of the score, its aging."""
    form = "" if run["form"] == "paper" else f", {run['form']} form"
    return form if run["aging_s"] is None else f"{form}, aging {number(run['aging_s'], 's')}"


def percent(share: float | None) -> float | None:
    """A share in percent."""
    return None if share is None else 100.0 * share


@click.command()
@fleet_option
@work_options
@click.option("--policies", default="rr-fcfs,hexgen", show_default=True, help="Policies, the first is the base.")
@rule_options
@click.option("--seeds", type=int, default=1, show_default=True, help="Runs per policy, seeds 0, 1, ...")
@as_json
def compare(fleet_name: str, policies: str, seeds: int, json_out: bool, **work: Any) -> None:
    """Run a trace under several policies, on the same arrivals and chances."""
    from control.policy.rules import policy_table
    from control.tuning.run import ratios, run

    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names:
        raise SettingError("--policies is empty: expected names separated by commas")
    rule = taken(work)
    for name in names:
        policy_table(name, *rule)
    if seeds < 1:
        raise SettingError(f"--seeds = {seeds}: expected a whole number >= 1")
    runs: list[dict[str, Any]] = []
    for seed in range(seeds):
        workload, fleet = inputs(fleet_name, seed, work)
        runs += [run(workload, fleet, name, seed, *rule) for name in names]
        if not json_out and seeds > 1:
            click.echo(f"seed {seed + 1} of {seeds} done", err=True)
    answer({"runs": runs, "ratios": ratios(runs)}, json_out, show_ratios)


def show_ratios(result: dict[str, Any]) -> None:
    """Mean figures per policy and the gain over the first."""
    from control.tuning.run import mean_of

    rows = [["policy", "P95", "P95 gain", "throughput", "SLO attainment", "SLO debt"]]
    for name in result["ratios"]:
        share = percent(mean_of(result["runs"], name, "slo_attainment"))
        rows.append(
            [
                name,
                number(mean_of(result["runs"], name, "p95_s"), "s"),
                number(result["ratios"][name]["p95_gain"], "x"),
                number(mean_of(result["runs"], name, "throughput_wps"), "workflows/s"),
                number(share, "%"),
                number(mean_of(result["runs"], name, "slo_debt_s"), "s"),
            ]
        )
    print_table(rows)
