"""Latencies of workflows and calls, out of the tables of a run. All in seconds."""

import numpy as np

from control.policy.codes import COMPLETED, DONE
from control.policy.tables import Floats, Table


def percentile(values: Floats, q: float) -> float | None:
    """The q-th percentile (linear interpolation); None of nothing."""
    return float(np.percentile(values, q)) if len(values) else None


def mean(values: Floats) -> float | None:
    """The mean; None of nothing."""
    return float(np.mean(values)) if len(values) else None


def workflow_latencies_s(workflows: Table) -> Floats:
    """End-to-end latency of every workflow that ran to its end."""
    done = workflows[workflows["state"] == DONE]
    return np.asarray(done["finished_s"] - done["arrival_s"])


def ttfts_s(calls: Table) -> Floats:
    """TTFT of every completed call: first token minus the time it became ready."""
    done = calls[calls["state"] == COMPLETED]
    return np.asarray(done["first_token_s"] - done["ready_s"])


def last_turn_calls(workflows: Table, calls: Table) -> Table:
    """The completed calls of the last group of every workflow that ran to its end."""
    last = workflows["first_call"] + workflows["n_calls"] - 1
    is_last = calls["group"] == calls["group"][last][calls["workflow"]]
    ran = workflows["state"][calls["workflow"]] == DONE
    rows: Table = calls[is_last & ran & (calls["state"] == COMPLETED)]
    return rows


def ttfets_s(workflows: Table, calls: Table) -> Floats:
    """TTFET: first token of the last turn minus the workflow's arrival (ConServe, section 1)."""
    turns = last_turn_calls(workflows, calls)
    first: Floats = np.full(len(workflows), np.inf)
    np.minimum.at(first, turns["workflow"], turns["first_token_s"])
    seen = np.isfinite(first)
    return np.asarray(first[seen] - workflows["arrival_s"][seen])


def tbts_s(workflows: Table, calls: Table) -> Floats:
    """TBT: mean inter-token time of each call of the last turn that generated two tokens or more."""
    turns = last_turn_calls(workflows, calls)
    turns = turns[turns["emitted"] > 1]
    return np.asarray((turns["finished_s"] - turns["first_token_s"]) / (turns["emitted"] - 1))
