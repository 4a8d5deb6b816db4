"""How long idle contexts are kept: the limit in force, put in force for contexts that are idle already."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from control.metrics.stages import UNDER_WAY
from control.policy.codes import NEEDS
from control.twin.conversations import retry_held
from control.twin.heap import schedule, unschedule
from control.twin.world import World


def retain(world: World, retention: Mapping[str, Any]) -> None:
    """Put `need` (a name of codes.NEEDS) and `idle_ttl_s` (s; None: for good) in force."""
    ttl_s = retention["idle_ttl_s"]
    world.policy[0]["need"] = NEEDS.index(retention["need"])
    world.policy[0]["idle_ttl_s"] = math.inf if ttl_s is None else ttl_s
    expire_anew(world)
    retry_held(world)


def expire_anew(world: World) -> None:
    """Have the limit in force go for contexts that are idle already; one that is past it is dropped now."""
    clock, limit_s = world.clock[0], float(world.policy[0]["idle_ttl_s"])
    turning = world.calls["stream_key"][np.isin(world.calls["state"], UNDER_WAY)] - int(clock["n_shared"])
    for s in np.flatnonzero((world.pins["instance"] >= 0) & (world.pins["last_s"] >= 0.0)):
        unschedule(world.expiries, int(s))
        if limit_s < math.inf and s not in turning:
            due_s = float(world.pins[s]["last_s"]) + limit_s
            schedule(world.expiries, int(s), max(due_s, float(clock["now_s"])))
