"""One run of the twin as one object of figures, and several side by side."""

import math
import time
from collections.abc import Sequence
from typing import Any

from control.metrics.summary import summary
from control.model.fleet import Fleet, profile_of
from control.model.workload import Workload
from control.policy.codes import CONVERSATION_POLICIES
from control.policy.rules import USUAL, Conversations
from control.twin.simulate import simulate


def run(
    workload: Workload,
    fleet: Fleet,
    policy: str,
    seed: int,
    alpha: float = 0.5,
    form: str = "paper",
    aging_s: float = math.inf,
    conversations: Conversations = USUAL,
) -> dict[str, Any]:
    """Simulate an arranged `workload` on `fleet`; figures as in metrics.summary, with what was run.

    The rules are those of pack.build_world; an aging that is off reads None in the figures. wall_s and cpu_s (s) time
    the simulation alone.

    Raises:
        SettingError: an unknown policy or form, alpha or aging out of bounds.
    """
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    world = simulate(workload, fleet, policy, alpha, form=form, aging_s=aging_s, conversations=conversations)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    figures = summary(world.workflows, world.calls, world.instances, [spec.name for spec in fleet.instances])
    for entry, spec in zip(figures["per_instance"], fleet.instances, strict=True):
        found = profile_of(spec)
        entry |= {"gpu": spec.gpu, "model": spec.model, "provenance": found.provenance}
    rule = {"policy": policy, "alpha": alpha, "form": form, "aging_s": aging_s if math.isfinite(aging_s) else None}
    rule |= conversation_settings(policy, conversations)
    head = {"seed": seed, "fleet": fleet.name, "trace": workload.name}
    return {**rule, **head, **figures, "events": int(world.clock[0]["events"]), "wall_s": wall_s, "cpu_s": cpu_s}


def conversation_settings(policy: str, settings: Conversations) -> dict[str, Any]:
    """What of the conversations' settings applies to a policy; a limit that is off reads None."""
    if policy not in CONVERSATION_POLICIES:
        return {}
    kept = {"need": settings.need, "idle_ttl_s": settings.idle_ttl_s if math.isfinite(settings.idle_ttl_s) else None}
    return kept | ({"router": settings.router, "error": 100.0 * settings.error} if policy == "ampd" else {})


def ratios(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Gains of each policy against the first: means over seeds, larger is better for *_gain."""
    policies = list(dict.fromkeys(run["policy"] for run in runs))
    first = policies[0]
    return {
        policy: {
            "p95_gain": over(mean_of(runs, first, "p95_s"), mean_of(runs, policy, "p95_s")),
            "mean_gain": over(mean_of(runs, first, "mean_s"), mean_of(runs, policy, "mean_s")),
            "throughput_gain": over(mean_of(runs, policy, "throughput_wps"), mean_of(runs, first, "throughput_wps")),
            "debt_ratio": over(mean_of(runs, policy, "slo_debt_s"), mean_of(runs, first, "slo_debt_s")),
        }
        for policy in policies
    }


def mean_of(runs: Sequence[dict[str, Any]], policy: str, field: str) -> float | None:
    """Mean of a figure over the runs of a policy; None where a run lacks it."""
    values = [run[field] for run in runs if run["policy"] == policy]
    return None if any(value is None for value in values) else sum(values) / len(values)


def over(a: float | None, b: float | None) -> float | None:
    """a / b; None where either is unknown or b is 0."""
    return None if a is None or b is None or b == 0.0 else a / b
