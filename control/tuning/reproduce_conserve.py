"""ConServe's experiment again: four policies on one trace of conversations, by rate, power caps and injected error.

Figures of ours are set beside the paper's where trace, turns, seed, rate, caps and error are the paper's, under its own
conventions (ConServe, sections 1 and 6).
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from control.errors import SettingError
from control.metrics.conversations import (
    SLO_FACTOR,
    Times,
    conversation_figures,
    conversation_times,
    meets_slo,
    without_admission,
)
from control.metrics.energy import context_tokens, conversation_energies
from control.metrics.summary import makespan_s
from control.model.workload import Workload
from control.policy.codes import COMPLETED
from control.policy.rules import Conversations
from control.tuning.conserve_reference import FITTED, FULL_DISAGG, SEED, TRACE, TURNS, Cell, cells
from control.tuning.conserve_setup import (
    MIXED,
    PAPER,
    POLICIES,
    SERVICE,
    Caps,
    Convention,
    check_caps,
    fleet_of,
    standalone,
)
from control.twin.simulate import simulate
from control.twin.world import World
from control.workload.conserve_runs import arrive


class Setup(NamedTuple):
    """What is run."""

    rates: Sequence[float]  # conversations/s
    caps: Sequence[Caps]
    errors: Sequence[float]  # per cent of AMPD's later turns that are sent back wrongly
    turns: int
    seed: int


def reproduce_conserve(work: Workload, setup: Setup) -> dict[str, Any]:
    """Every policy at every rate and cap, by the paper's conventions first, then as a service would; and the paper.

    `work` holds the turns of `setup` alone, without think time. AMPD runs once an error.

    Raises:
        SettingError: a cap, a rate or an error out of bounds.
    """
    for caps in setup.caps:
        check_caps(caps)
    alone = standalone(work)
    if not np.isfinite(alone.ttfet_s).any():
        raise SettingError(
            f"{work.name}: none of its conversations runs to its end on these engines; contexts too long?"
        )
    runs = [
        run_conserve(work, alone, policy, convention, caps=caps, rate=rate, error=error, seed=setup.seed)
        for convention in (PAPER, SERVICE)
        for caps in setup.caps
        for rate in setup.rates
        for policy in POLICIES
        for error in (setup.errors if policy == "ampd" else [None])
    ]
    return {
        "trace": work.name,
        "conversations": len(work.workflows),
        "calls": len(work.calls),
        "turns": setup.turns,
        "seed": setup.seed,
        "slo_factor": SLO_FACTOR,
        "standalone": {
            "ttfet_mean_s": float(np.nanmean(alone.ttfet_s)),
            "e2e_mean_s": float(np.nanmean(alone.e2e_s)),
            "tbt_mean_s": float(np.nanmean(alone.tbt_s)) if np.isfinite(alone.tbt_s).any() else None,
        },
        "runs": runs,
        "reference": list(compared(work, setup, runs)),
        "problems": list(work.problems),
    }


def run_conserve(
    work: Workload,
    alone: Times,
    policy: str,
    convention: Convention,
    *,
    caps: Caps,
    rate: float,
    error: float | None,
    seed: int,
) -> dict[str, Any]:
    """One run as figures: latencies in units of standalone, violations in per cent, joules; cpu_s times the run alone.

    `error` is in per cent.
    """
    settings = Conversations(need=convention.need, error=(error or 0.0) / 100.0)
    arranged, fleet = arrive(work, rate, seed), fleet_of(policy, caps)
    cpu_s = time.process_time()
    world = simulate(arranged, fleet, policy, conversations=settings)
    cpu_s = time.process_time() - cpu_s
    head = {
        "policy": policy,
        "rate": rate,
        "caps": str(caps),
        "error": error,
        "seed": seed,
        "need": convention.need,
        "prefill_queue": convention.prefill_queue,
    }
    return head | run_figures(world, alone, policy, convention) | {"cpu_s": cpu_s}


def run_figures(world: World, alone: Times, policy: str, convention: Convention) -> dict[str, Any]:
    """The figures of a world that ended, by `convention`."""
    full = times = conversation_times(world.workflows, world.calls)
    if policy not in MIXED and not convention.prefill_queue:
        times = without_admission(times)
    met = meets_slo(times, alone)
    return {
        **conversation_figures(times, alone),
        **conversation_energies(world.workflows, world.calls, world.instances, met),
        "slo_attainment": float(met.mean()) if len(met) else None,
        "completed": int((world.calls["state"] == COMPLETED).sum()),
        "context_tokens": context_tokens(world.calls),
        "makespan_s": makespan_s(world.workflows),
        "prefill_queue_mean_s": float(full.queue_s.mean()),
        "hold_mean_s": float(full.hold_s.mean()),
        "transfer_s": float(world.calls["transfer_s"].sum()),
        "kv_sent": int(world.instances["sent"].sum()),
        "kv_sent_tokens": int(world.instances["sent_tokens"].sum()),
        "pin_breaks": int(world.clock[0]["breaks"]),
        "events": int(world.clock[0]["events"]),
    }


def figure_of(run: dict[str, Any], figure: str) -> float | None:
    """A figure of a run by its name; "violations.ttfet" stands in the object of that name."""
    outer, _, inner = figure.partition(".")
    value: float | None = run[outer][inner] if inner else run[outer]
    return value


def is_published(work: Workload, setup: Setup) -> bool:
    """Whether trace, turns and seed are the paper's."""
    tokens = int(work.calls["input_tokens"].sum() + work.calls["output_tokens"].sum())
    return (len(work.workflows), len(work.calls), tokens) == TRACE and (setup.turns, setup.seed) == (TURNS, SEED)


def compared(work: Workload, setup: Setup, runs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The paper's figures that some run answers to, with ours and (ours - paper) / paper; none on another trace."""
    if not is_published(work, setup):
        return
    by_paper = [run for run in runs if (run["need"], run["prefill_queue"]) == PAPER]
    keyed = {(run["policy"], run["rate"], run["caps"], run["error"]): run for run in by_paper}
    for cell in cells():
        run = keyed.get((cell.policy, cell.rate, cell.caps, cell.error))
        if run is not None:
            yield beside(cell, figure_of(run, cell.figure))
    yield from ranges([run for run in by_paper if run["policy"] == "full-disagg" and run["caps"] == "300/300"])


def beside(cell: Cell, ours: float | None) -> dict[str, Any]:
    """One figure of the paper beside ours; the difference is relative, None where the paper's figure is 0."""
    row = cell._asdict()
    value = row.pop("value")
    difference = None if ours is None or value == 0.0 else (ours - value) / value
    fitted = (cell.policy, cell.rate, cell.caps, cell.figure) in FITTED
    return {"section": "6", **row, "reference": value, "ours": ours, "difference": difference, "fitted": fitted}


def ranges(runs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the paper gives as a range over the rates, with ours over the same; no difference is told of a range."""
    if not runs:
        return
    for figure, bounds in FULL_DISAGG.items():
        values = [value for value in (figure_of(run, figure) for run in runs) if value is not None]
        yield {
            "section": "6",
            "table": "full_disagg",
            "policy": "full-disagg",
            "rate": None,
            "caps": "300/300",
            "error": None,
            "figure": figure,
            "reference": list(bounds),
            "ours": [min(values), max(values)] if values else None,
            "difference": None,
            "fitted": False,
        }
