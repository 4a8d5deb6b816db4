"""Joules, and tokens per joule (ConServe, section 1)."""

from control.policy.codes import COMPLETED
from control.policy.tables import Table


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
