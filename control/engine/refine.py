"""Keep the profiles of real servers up to date: where what they serve drifts from what is predicted, costs follow.

Predictions are made with the costs in force, so the drift that is seen is what is left to correct.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from control.engine.state import Live, take_costs
from control.model.fleet import InstanceSpec

EVERY_S = 30.0  # s between looks
LEAST = 30  # calls compared before a profile is changed
TOLERATED = 0.10  # drift that is left alone
BOUNDS = 0.2, 5.0  # a factor beyond these is a fault, not drift


def refine(live: Live) -> list[str]:
    """Bring the costs of servers that drifted to what was served; what was changed, in words."""
    told, specs = [], list(live.fleet.instances)
    for i, seen in list(live.observed.items()):
        if int(seen.get("compared") or 0) < LEAST or seen.get("refined") != live.refined.get(i, 0):
            continue
        new = refined(specs[i], seen)
        if new != specs[i]:
            told.append(
                f"{new.name}: prefill now x{new.prefill_scale:.2f}, decode x{new.decode_scale:.2f} of its profile"
            )
            specs[i] = new
            live.refined[i] = live.refined.get(i, 0) + 1
    if told:
        live.fleet = replace(live.fleet, instances=tuple(specs))
        take_costs(live)
    return told


def refined(spec: InstanceSpec, seen: Mapping[str, Any]) -> InstanceSpec:
    """A server's spec with the factors that take out its drift."""
    prefill = factor(spec.prefill_scale, seen.get("ttft_drift"))
    decode = factor(spec.decode_scale, seen.get("tpot_drift"))
    return replace(spec, prefill_scale=prefill, decode_scale=decode)


def factor(old: float, drift: float | None) -> float:
    """A factor that takes out half of a drift (served over predicted, less 1): calls differ, and so do loads."""
    if drift is None or abs(drift) <= TOLERATED:
        return old
    return round(min(BOUNDS[1], max(BOUNDS[0], old * math.sqrt(1.0 + drift))), 4)
