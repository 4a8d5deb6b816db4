"""SLO attainment and SLO debt."""

import numpy as np

from control.policy.codes import ACTIVE, BROKEN, DONE
from control.policy.tables import Floats, Table


def attainment(workflows: Table) -> float | None:
    """Share of the ended workflows that met their SLO; a broken one did not. None before any ended."""
    ended = np.isin(workflows["state"], (DONE, BROKEN))
    met = (workflows["state"] == DONE) & (latency_s(workflows) <= workflows["slo_s"])
    return float(met.sum() / ended.sum()) if ended.any() else None


def latency_s(workflows: Table) -> Floats:
    """Time from arrival to end, s; meaningless for workflows that have not ended."""
    return np.asarray(workflows["finished_s"] - workflows["arrival_s"])


def finished_debt_s(workflows: Table) -> float:
    """Sum of max(0, latency - SLO) over the workflows that ran to their end, s."""
    done = workflows[workflows["state"] == DONE]
    return float(np.maximum(0.0, latency_s(done) - done["slo_s"]).sum())


def clocks_s(workflows: Table, now_s: float) -> Floats:
    """The moment up to which each workflow has run by `now_s`, s.

    One that may go on, and whose client has all its answers, stands still at the last of them.
    """
    rests = (workflows["open_end"] == 1) & (workflows["open_calls"] == 0)
    return np.where(rests, workflows["group_done_s"], now_s)


def overdue_s(workflows: Table, now_s: float) -> Floats:
    """Time by which each workflow is past its deadline at `now_s`; 0 unless it is active, s."""
    late = np.maximum(0.0, clocks_s(workflows, now_s) - workflows["arrival_s"] - workflows["slo_s"])
    return np.where(workflows["state"] == ACTIVE, late, 0.0)
