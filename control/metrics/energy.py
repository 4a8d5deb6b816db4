"""Joules, and tokens per joule (ConServe, section 1).

Every joule of a run is drawn for prefill tokens, for generated tokens, or while idle; the first two are booked on calls
too, by their share of the tokens of each iteration.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from control.policy.codes import COMPLETED, DONE
from control.policy.tables import Floats, Table


def context_tokens(calls: Table) -> int:
    """Full-context tokens of completed calls: the whole input sent, plus the output."""
    done = calls[calls["state"] == COMPLETED]
    return int(done["input_tokens"].sum() + done["emitted"].sum())


def energy_j(instances: Table) -> float:
    """J drawn by all instances, idle included."""
    return float(instances["energy_j"].sum())


def tokens_per_joule(calls: Table, instances: Table, idle_billed: bool) -> float | None:
    """Full-context tokens over joules; not `idle_billed`: without the idle draw of instances that have finished."""
    joules = energy_j(instances)
    if not idle_billed:
        joules -= float(instances["idle_after_j"].sum())
    return context_tokens(calls) / joules if joules > 0.0 else None


def phase_energies_j(instances: Table) -> dict[str, float]:
    """J of all instances by what they were drawn for; prefill, decode and idle sum to energy_j.

    `idle_after_j`, part of `idle_j`, was drawn by instances that had finished.
    """
    total, idle = energy_j(instances), float(instances["idle_j"].sum())
    prefill = float(instances["prefill_j"].sum())
    return {
        "energy_j": total,
        "prefill_j": prefill,
        "decode_j": total - prefill - idle,
        "idle_j": idle,
        "idle_after_j": float(instances["idle_after_j"].sum()),
    }


def workflow_energies_j(workflows: Table, calls: Table) -> Floats:
    """J booked on the calls of each workflow [w]: its share of the iterations it took part in, no idle draw."""
    return np.bincount(calls["workflow"], weights=calls["energy_j"], minlength=len(workflows)).astype(np.float64)


def conversation_energies(
    workflows: Table, calls: Table, instances: Table, met: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """Joules by phase, per conversation that ended and per one that met its SLO (`met` [w]); tokens per joule.

    `joules_per_conversation` and `joules_per_slo_met` share out all that was drawn, idle included; `workflow_j_mean` is
    what is booked on the calls alone. None where nothing ended or met.
    """
    done = workflows["state"] == DONE
    total = energy_j(instances)
    own = workflow_energies_j(workflows, calls)[done]
    n_met = int((met & done).sum())
    return {
        **phase_energies_j(instances),
        "joules_per_conversation": total / int(done.sum()) if done.any() else None,
        "joules_per_slo_met": total / n_met if n_met else None,
        "workflow_j_mean": float(own.mean()) if len(own) else None,
        "tokens_per_joule": tokens_per_joule(calls, instances, idle_billed=False),
        "tokens_per_joule_idle_billed": tokens_per_joule(calls, instances, idle_billed=True),
    }
