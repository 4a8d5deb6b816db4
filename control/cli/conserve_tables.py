"""ConServe's runs for a person: tables with units, the paper's figures beside ours."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from control.cli.options import number, print_table
from control.tuning.report.conserve_text import misses

Run = dict[str, Any]

LATENCIES = {"ttfet_gmean": "TTFET gmean", "ttfet_p95": "TTFET P95", "tbt_p95": "TBT P95", "e2e_p95": "E2E P95"}
ENERGIES = {"tokens_per_joule": "tok/J", "tokens_per_joule_idle_billed": "tok/J, idle billed"}


def show_conserve(result: dict[str, Any]) -> None:
    """Latencies, violations and energy by convention and caps; AMPD by error; what is off."""
    click.echo(
        f"{result['trace']}: {result['conversations']:,} conversations, {result['calls']:,} calls; alone TTFET "
        f"{result['standalone']['ttfet_mean_s']:.2f} s, E2E {result['standalone']['e2e_mean_s']:.2f} s on average"
    )
    groups: dict[tuple[str, bool, str], list[Run]] = {}
    for run in result["runs"]:
        groups.setdefault((run["need"], run["prefill_queue"], run["caps"]), []).append(run)
    for (need, queue, caps), runs in groups.items():
        is_paper = not queue
        waits = "waits to be let in left out (the paper's conventions)" if is_paper else "all waits counted"
        click.echo(f"\ncaps {caps} W, need {need}, {waits}; times in units of standalone")
        reference = result["reference"] if is_paper else []
        print_table([head(reference), *(line(run, reference) for run in runs if is_in_table(run, runs))])
        sweep = [run for run in runs if run["policy"] == "ampd" and run["rate"] == max(r["rate"] for r in runs)]
        if len(sweep) > 1:
            click.echo(f"\nAMPD by error at {sweep[0]['rate']:g} conversations/s")
            print_table([sweep_head(reference), *(sweep_line(run, reference) for run in sweep)])
    if "coding" in result:
        show_coding(result["coding"])
    if missed := misses(result["reference"]):
        click.echo("\n" + "\n".join(missed))
    for problem in result["problems"]:
        click.echo(f"note: {problem}")


def is_in_table(run: Run, runs: Sequence[Run]) -> bool:
    """Whether a run stands in the table by rate: of AMPD's, those of one error alone."""
    errors = [r["error"] for r in runs if r["policy"] == "ampd"]
    shown = 10.0 if 10.0 in errors else errors[0] if errors else None
    return run["error"] is None or run["error"] == shown


def known(reference: Sequence[Run], run: Run, figure: str) -> float | None:
    """The paper's figure for a run; None where it has none."""
    where = ("policy", "rate", "caps", "error")
    rows = (row for row in reference if row["figure"] == figure and all(row[key] == run[key] for key in where))
    row = next(rows, None)
    return None if row is None else row["reference"]


def pair(reference: Sequence[Run], run: Run, figure: str, digits: int = 2) -> list[str]:
    """Ours, and the paper's in brackets where any is known."""
    theirs = known(reference, run, figure)
    return [fixed(run[figure], digits)] + ([f"({fixed(theirs, digits)})"] if reference else [])


def head(reference: Sequence[Run]) -> list[str]:
    """The titles of the table by rate."""
    cells = ["policy", "conv/s"]
    for title in (*LATENCIES.values(), *ENERGIES.values()):
        cells += [title] + (["(paper)"] if reference else [])
    return [*cells, "violations TTFET/TBT/E2E %", "kJ", "J/SLO-met"]


def line(run: Run, reference: Sequence[Run]) -> list[str]:
    """A line of the table by rate."""
    cells = [policy_name(run), f"{run['rate']:g}"]
    for figure in (*LATENCIES, *ENERGIES):
        cells += pair(reference, run, figure)
    return [*cells, violations(run), fixed(run["energy_j"] / 1e3, 1), number(run["joules_per_slo_met"])]


def sweep_head(reference: Sequence[Run]) -> list[str]:
    """The titles of AMPD's sweep."""
    cells = ["error %"]
    for title in ("TTFET P95", "tok/J"):
        cells += [title] + (["(paper)"] if reference else [])
    return [*cells, "violations TTFET/TBT/E2E %"]


def sweep_line(run: Run, reference: Sequence[Run]) -> list[str]:
    """A line of AMPD's sweep."""
    cells = [f"{run['error']:g}"]
    for figure in ("ttfet_p95", "tokens_per_joule"):
        cells += pair(reference, run, figure)
    return [*cells, violations(run)]


def show_coding(coding: dict[str, Any]) -> None:
    """Coding agents under the same policies, with think time, by retention limit."""
    click.echo(
        f"\n{coding['trace']}: {coding['conversations']:,} conversations, {coding['calls']:,} calls, with think time "
        "(which counts in no latency); times in units of standalone"
    )
    cells: dict[str, Callable[[Run], str]] = {
        "policy": lambda run: run["policy"],
        "conv/s": lambda run: f"{run['rate']:g}",
        "idle KV kept": lambda run: "for ever" if run["idle_ttl_s"] is None else f"{run['idle_ttl_s']:g} s",
        "TTFET P95": lambda run: fixed(run["ttfet_p95"], 2),
        "TTFT P95 of turns, s": lambda run: fixed(run["turn_ttft_p95_s"], 2),
        "violations TTFET/TBT/E2E %": violations,
        "idle KV mean %": lambda run: fixed(percent(run["idle_kv_mean"]), 1),
        "peak %": lambda run: fixed(percent(run["idle_kv_peak"]), 1),
        "recomputed tokens": lambda run: f"{run['recomputed_tokens']:,}",
        "waited for a decoder, s": lambda run: fixed(run["hold_s"], 0),
    }
    print_table([list(cells), *([cell(run) for cell in cells.values()] for run in coding["runs"])])
    for problem in coding["problems"]:
        click.echo(f"note: {problem}")


def policy_name(run: Run) -> str:
    """The policy, with the injected error of AMPD."""
    return run["policy"] if run["error"] is None else f"{run['policy']} {run['error']:g} %"


def violations(run: Run) -> str:
    """Violations of TTFET, TBT and E2E, per cent."""
    return "/".join(fixed(run["violations"][name], 1) for name in ("ttfet", "tbt", "e2e"))


def percent(share: float | None) -> float | None:
    """A share in per cent."""
    return None if share is None else 100.0 * share


def fixed(value: float | None, digits: int) -> str:
    """A figure with `digits` decimals; a dash for what was not measured."""
    return "–" if value is None else f"{value:,.{digits}f}"
