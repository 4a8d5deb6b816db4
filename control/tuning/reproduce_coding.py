"""ConServe's policies on real coding agents: think time between turns, growing contexts, and pins that hold idle KV.

The need is what is seen, every wait counts, and contexts are kept for ever or for a retention limit (ConServe,
sections 1 and 7). Think time is the client's own: it is taken off TTFET and E2E, here and in the standalone run.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from control.errors import SettingError
from control.metrics.conversations import Times, conversation_figures, conversation_times, meets_slo
from control.metrics.energy import conversation_energies
from control.metrics.latency import percentile, ttfts_s
from control.metrics.summary import makespan_s
from control.model.fleet import capacity
from control.model.workload import Workload
from control.policy.codes import COMPLETED, REFUSED, ROLES
from control.policy.rules import Conversations
from control.policy.tables import Floats
from control.tuning.conserve_setup import SERVICE, Caps, fleet_of, standalone_world
from control.twin.kernel import advance
from control.twin.pack import build_world
from control.twin.simulate import simulate
from control.twin.world import World
from control.workload.build import chosen, dense_streams, settle
from control.workload.conserve_runs import arrive
from control.workload.load import load_trace

RATES: Final = (0.05, 0.1, 0.2)  # conversations/s: light, half full, more than pins for ever can hold
LONGEST_FIRST: Final = 40_000  # tokens; a trace that starts longer starts in the middle of a conversation
UNCAPPED: Final = Caps(300.0, 300.0)
GRID_S: Final = 5.0  # between two looks at the idle KV
MAIN: Final = "main"  # step of a main agent's calls
AMPD_ERROR: Final = 0.1  # share of wrong turns


class Case(NamedTuple):
    """A policy and how long it keeps an idle context, s."""

    policy: str
    idle_ttl_s: float = math.inf


CASES: Final = (
    Case("collocated"),
    Case("full-disagg"),
    Case("ampd"),
    Case("session-affinity"),
    Case("prefix-affinity"),
    Case("conserve"),
    Case("conserve", 300.0),
    Case("conserve", 60.0),
    Case("conserve", 30.0),
)


def read_coding_work(path: str) -> Workload:
    """Main agents whose first request is under LONGEST_FIRST tokens, each up to its first context beyond the limit.

    What was left out stands in `problems`.

    Raises:
        TraceError: the file cannot be read.
        SettingError: it holds no coding agents, or none that fits.
    """
    work = load_trace(path)
    if MAIN not in work.steps:
        raise SettingError(f"--coding = {path!r}: expected coding-agent requests, not a trace of format {work.format}")
    first = work.calls[work.workflows["first_call"]]
    whole = (first["input_tokens"] < LONGEST_FIRST) & (first["step"] == work.steps.index(MAIN))
    kept = dense_streams(leading_fit(chosen(main_agents(work), whole), context_limit()))
    if len(kept.workflows) == 0:
        raise SettingError(f"--coding = {path!r}: no main agent begins under {LONGEST_FIRST:,} tokens")
    return kept._replace(problems=(*work.problems, *left_out(work, whole, kept)))


def main_agents(work: Workload) -> Workload:
    """The calls of main agents alone, turn by turn."""
    return settle(work._replace(calls=work.calls[work.calls["step"] == work.steps.index(MAIN)]))


def context_limit() -> int:
    """Tokens that the longest context on the paper's fleet may have."""
    return min(capacity(spec)[1] for spec in fleet_of("conserve", UNCAPPED).instances)


def leading_fit(work: Workload, limit: int) -> Workload:
    """Every workflow up to its first call whose context, output included, is over `limit` tokens."""
    calls = work.calls
    over = calls["input_tokens"].astype(np.int64) + calls["output_tokens"] > limit
    stop = np.full(len(work.workflows), np.iinfo(np.int64).max)
    np.minimum.at(stop, calls["workflow"][over], calls["group"][over])
    kept = work._replace(calls=calls[calls["group"] < stop[calls["workflow"]]])
    return chosen(kept, np.bincount(kept.calls["workflow"], minlength=len(work.workflows)) > 0)


def left_out(work: Workload, whole: np.ndarray[Any, np.dtype[np.bool_]], kept: Workload) -> tuple[str, ...]:
    """What of the trace is not run, a line each."""
    main = work.calls["step"] == work.steps.index(MAIN)
    mine = main & whole[work.calls["workflow"]]
    sizes = np.bincount(work.calls["workflow"][mine], minlength=len(whole))[whole]
    uncut = int((sizes == kept.workflows["n_calls"]).sum()) if len(sizes) == len(kept.workflows) else 0
    return (
        f"{int((~whole).sum())} of {len(whole)} conversations left out: they begin with {LONGEST_FIRST:,} tokens or "
        "more, or not with the main agent",
        f"{int((~main).sum()):,} calls of sub-agents left out",
        f"{int(mine.sum()) - len(kept.calls):,} of {int(mine.sum()):,} main calls left out: from the first context "
        f"over {context_limit():,} tokens on; {uncut} of {len(kept.workflows)} conversations are whole",
    )


def reproduce_coding(
    work: Workload, seed: int, rates: Sequence[float] = RATES, cases: Sequence[Case] = CASES
) -> dict[str, Any]:
    """Every case at every rate (conversations/s), with what its pins hold idle and what a retention limit costs.

    Raises SettingError: a rate that is none.
    """
    alone = served_times(standalone_world(work))
    return {
        "trace": work.name,
        "conversations": len(work.workflows),
        "calls": len(work.calls),
        "seed": seed,
        "context_limit_tokens": context_limit(),
        "turns": turn_facts(work),
        "runs": [
            {"policy": case.policy, "rate": rate} | run_coding(arrive(work, rate, seed), alone, case)
            for rate in rates
            for case in cases
        ],
        "problems": list(work.problems),
    }


def turn_facts(work: Workload) -> dict[str, float]:
    """How much of the uncached prefill turn 1 carries, and how long the pauses are, as shares."""
    calls = work.calls
    new = (calls["input_tokens"] - calls["history_tokens"]).astype(np.float64)
    last = work.workflows["first_call"] + work.workflows["n_calls"] - 1
    pauses_s = np.delete(calls["tool_s"], last)
    return {
        "first_turn_share": float(new[calls["group"] == 0].sum() / new.sum()),
        "pauses_over_30_s": over(pauses_s, 30.0),
        "pauses_over_60_s": over(pauses_s, 60.0),
        "pauses_over_300_s": over(pauses_s, 300.0),
    }


def over(values: Floats, bound: float) -> float:
    """Share of values above `bound`; 0 of nothing."""
    return float((values > bound).mean()) if len(values) else 0.0


def served_times(world: World) -> Times:
    """Times of every conversation without the think time it waited for, s."""
    times = conversation_times(world.workflows, world.calls)
    think_s = world.workflows["tool_s"]
    return times._replace(ttfet_s=times.ttfet_s - think_s, e2e_s=times.e2e_s - think_s)


def run_coding(arranged: Workload, alone: Times, case: Case) -> dict[str, Any]:
    """One case as figures; idle KV as shares of the KV of all instances that decode, cpu_s without looking at it."""
    fleet = fleet_of(case.policy, UNCAPPED)
    error = AMPD_ERROR if case.policy == "ampd" else 0.0
    settings = Conversations(need=SERVICE.need, error=error, idle_ttl_s=case.idle_ttl_s)
    cpu_s = time.process_time()
    world = simulate(arranged, fleet, case.policy, conversations=settings)
    cpu_s = time.process_time() - cpu_s
    times = served_times(world)
    end_s = float(world.workflows["finished_s"].max())
    idle = idle_kv(build_world(arranged, fleet, case.policy, conversations=settings), end_s)
    return {
        "idle_ttl_s": case.idle_ttl_s if math.isfinite(case.idle_ttl_s) else None,
        **conversation_figures(times, alone),
        "turn_ttft_p95_s": percentile(ttfts_s(world.calls), 95),
        **conversation_energies(world.workflows, world.calls, world.instances, meets_slo(times, alone)),
        "completed": int((world.calls["state"] == COMPLETED).sum()),
        "refused": int((world.calls["state"] == REFUSED).sum()),
        "recomputed_tokens": int(world.pins["recomputed"].sum()),
        "pin_breaks": int(world.clock[0]["breaks"]),
        "evicted_blocks": int(world.instances["evicted_blocks"].sum()),
        "preemptions": int(world.instances["preemptions"].sum()),
        "hold_s": float(world.calls["hold_s"].sum()),
        "makespan_s": makespan_s(world.workflows),
        "idle_kv_mean": float(idle.mean()) if len(idle) else None,
        "idle_kv_peak": float(idle.max()) if len(idle) else None,
        "cpu_s": cpu_s,
    }


def idle_kv(world: World, end_s: float) -> Floats:
    """Share of the decode tier's KV held by idle contexts of pinned conversations, every GRID_S up to `end_s`.

    The world is run to `end_s`.
    """
    grid = np.arange(float(world.clock[0]["first_arrival_s"]), end_s, GRID_S)
    shares: Floats = np.zeros(len(grid))
    for k, at_s in enumerate(grid):
        advance(world, float(at_s))
        shares[k] = idle_share(world)
    return shares


def idle_share(world: World) -> float:
    """Share of KV blocks that hold the contexts of pinned conversations between their turns, now."""
    rows = np.flatnonzero(world.pins["instance"] >= 0)
    where = world.pins["instance"][rows]
    entries = world.slots[where, rows + int(world.clock[0]["n_shared"])]
    blocks = int(world.prefixes["blocks"][entries[entries >= 0]].sum())
    return blocks / decoding_blocks(world)


def decoding_blocks(world: World) -> int:
    """KV blocks of the instances that decode."""
    roles = world.instances["role"]
    return int(world.instances["blocks"][roles != ROLES.index("prefill")].sum())
