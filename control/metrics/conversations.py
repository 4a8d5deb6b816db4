"""Conversations beside what they would take alone: TTFET, E2E, TBT and TTFT, their ratios and violations.

All times in seconds, all ratios in units of the standalone run, all violations in per cent (ConServe, section 1).
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from control.policy.codes import COMPLETED, DONE
from control.policy.tables import Floats, Table

SLO_FACTOR = 5.0  # the SLO of TTFET, TBT and E2E in units of standalone

Mask = npt.NDArray[np.bool_]


class Times(NamedTuple):
    """Times of every workflow [w], s; nan where it has none: it did not run to its end, or one token has no gap."""

    ttfet_s: Floats  # first user-visible output minus arrival
    e2e_s: Floats  # end of the last turn minus arrival
    tbt_s: Floats  # mean gap between the tokens of the last turn
    ttft_s: Floats  # first token of the first turn minus arrival
    queue_s: Floats  # part of all but tbt_s that turn 1 waited in the prefiller's queue
    hold_s: Floats  # part of ttfet_s and e2e_s that turn 1 waited, prefilled, for a decoder with room


def conversation_times(workflows: Table, calls: Table, visible: Collection[int] | None = None) -> Times:
    """Times of every workflow, s.

    The first user-visible output is the first token of any completed call whose turn (0-based `group`) is in
    `visible`; None: of the last turn.
    """
    turn = calls["group"]
    last = np.zeros(len(workflows), np.int64)
    np.maximum.at(last, calls["workflow"], turn)
    in_last = turn == last[calls["workflow"]]
    shown = in_last if visible is None else np.isin(turn, list(visible))
    done = workflows["state"] == DONE
    arrival_s = workflows["arrival_s"]
    ttfet_s = first_tokens_s(calls, shown, len(workflows)) - arrival_s
    ttft_s = first_tokens_s(calls, turn == 0, len(workflows)) - arrival_s
    first = calls[workflows["first_call"]]
    began = first["started_s"] >= 0.0
    return Times(
        ttfet_s=np.where(done, ttfet_s, np.nan),
        e2e_s=np.where(done, workflows["finished_s"] - arrival_s, np.nan),
        tbt_s=np.where(done, mean_gaps_s(calls, in_last, len(workflows)), np.nan),
        ttft_s=np.where(done, ttft_s, np.nan),
        queue_s=np.where(began, first["started_s"] - first["ready_s"], 0.0),
        hold_s=np.where(began, first["hold_s"], 0.0),
    )


def first_tokens_s(calls: Table, among: Mask, n: int) -> Floats:
    """When the first token of the completed calls in `among` came, by workflow [n], s on the clock; nan: none."""
    rows = calls[among & (calls["state"] == COMPLETED)]
    first_s: Floats = np.full(n, np.inf)
    np.minimum.at(first_s, rows["workflow"], rows["first_token_s"])
    return np.where(np.isfinite(first_s), first_s, np.nan)


def mean_gaps_s(calls: Table, among: Mask, n: int) -> Floats:
    """Mean time between tokens of the completed calls in `among`, by workflow [n], s; nan: no two tokens."""
    rows = calls[among & (calls["state"] == COMPLETED) & (calls["emitted"] > 1)]
    seconds = np.bincount(rows["workflow"], weights=rows["finished_s"] - rows["first_token_s"], minlength=n)
    gaps = np.bincount(rows["workflow"], weights=rows["emitted"] - 1, minlength=n)
    return np.where(gaps > 0, seconds / np.maximum(gaps, 1.0), np.nan)


def without_admission(times: Times) -> Times:
    """The times without what turn 1 waited to be let in, in the prefiller's queue and for a decoder with room, s.

    The paper counts neither (ConServe, section 1).
    """
    none_s: Floats = np.zeros(len(times.queue_s))
    wait_s = times.queue_s + times.hold_s
    return times._replace(
        ttfet_s=times.ttfet_s - wait_s,
        e2e_s=times.e2e_s - wait_s,
        ttft_s=times.ttft_s - times.queue_s,
        queue_s=none_s,
        hold_s=none_s,
    )


def over_standalone(times: Times, alone: Times) -> Times:
    """Every time in units of the same conversation's standalone time; the waits of turn 1 stay in s."""
    ratios = {name: getattr(times, name) / getattr(alone, name) for name in ("ttfet_s", "e2e_s", "tbt_s", "ttft_s")}
    return times._replace(**ratios)


def violated(ratio: Floats, alone_s: Floats, factor: float) -> Mask:
    """Whether each conversation took longer than `factor` x standalone; one that did not end did.

    Where standalone has no such time, nothing can be violated.
    """
    return ~(ratio <= factor) & ~np.isnan(alone_s)


def meets_slo(times: Times, alone: Times, factor: float = SLO_FACTOR) -> Mask:
    """Whether each conversation kept TTFET, TBT and E2E within `factor` x standalone [w]."""
    ratios = over_standalone(times, alone)
    broken = [violated(getattr(ratios, f"{n}_s"), getattr(alone, f"{n}_s"), factor) for n in ("ttfet", "tbt", "e2e")]
    kept: Mask = ~(broken[0] | broken[1] | broken[2])
    return kept


def conversation_figures(times: Times, alone: Times, factor: float = SLO_FACTOR) -> dict[str, Any]:
    """Geometric means and P95 in units of standalone, violations in per cent; None of nothing."""
    ratios = over_standalone(times, alone)
    figures: dict[str, Any] = {}
    violations = {}
    for name in ("ttfet", "tbt", "e2e", "ttft"):
        ratio = getattr(ratios, f"{name}_s")
        known = ratio[~np.isnan(ratio)]
        figures[f"{name}_gmean"] = float(np.exp(np.log(known).mean())) if len(known) else None
        figures[f"{name}_p95"] = float(np.percentile(known, 95)) if len(known) else None
        if name != "ttft":
            broken = violated(ratio, getattr(alone, f"{name}_s"), factor)
            violations[name] = 100.0 * float(broken.mean()) if len(broken) else None
    return figures | {"violations": violations}
