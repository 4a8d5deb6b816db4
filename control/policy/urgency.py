"""Urgency of a waiting call (HexGen-Flow, section 3)."""

from control.jit import compiled
from control.policy.tables import Record


@compiled
def urgency_s(call: Record, now_s: float) -> float:
    """U_ij = T(e, step) - (slo_ij - waited_ij), s; the largest is served first (least laxity)."""
    waited_s = now_s - call["ready_s"]
    return call["t_comp_s"] - (call["budget_s"] - waited_s)
