"""Keep the profiles of real servers up to date: where what they serve drifts from what the twin says of the same calls,
costs follow.

Looking takes some tens of ms of processor a server and needs no lock: requests go on meanwhile. One server is looked at
at a time, so that the engine's loop goes on too. What came of it is put in force under the lock.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from control.engine.state import Live, take_costs
from control.errors import InputError
from control.model.fleet import InstanceSpec
from control.tuning.served import Compared, Served, compare, fit

EVERY_S = 10.0  # s between looks at a server
LEAST = 30  # calls judged before a profile is changed
WINDOW_S = 120.0  # calls sent before that long ago say nothing of now
TOLERATED = 0.03  # drift that is left alone
TOLD = 0.10  # change of a factor, relative, of which the audit tells
NONE: Mapping[str, float | int | None] = {
    "compared": 0,
    **dict.fromkeys(("predicted_ttft_s", "ttft_s", "predicted_tpot_s", "tpot_s", "ttft_drift", "tpot_drift")),
}


class Refiner:
    """Looks at what real servers serve, and what is to follow from it."""

    def __init__(self) -> None:
        self.due_s: dict[int, float] = {}  # next look at each server, by row
        self.newest_s: dict[int, float] = {}  # sending of the newest call that was looked at, by row
        self.wanted: dict[int, InstanceSpec] = {}
        self.told: dict[int, tuple[float, float]] = {}  # factors the audit knows of, by row

    def look(self, live: Live) -> None:
        """Compare the server that is longest due with the twin, where one is; needs no lock."""
        i = min(list(live.served), key=lambda row: self.due_s.get(row, 0.0), default=None)
        if i is None or live.now_s < self.due_s.get(i, 0.0):
            return
        self.due_s[i] = live.now_s + EVERY_S
        calls = recent(list(live.served[i]))
        if not calls or calls[-1].sent_s == self.newest_s.get(i):
            return
        self.newest_s[i] = calls[-1].sent_s
        spec = live.fleet.instances[i]
        with suppress(InputError):  # its costs are not known: nothing to compare with
            seen = compare(spec, calls)
            if seen is not None:
                live.compared[i] = as_row(seen)
            if seen is not None and is_off(seen):
                self.wanted[i] = halfway(spec, fit(spec, calls))

    def apply(self, live: Live) -> list[str]:
        """Put in force what the last look asks for; what changed, in words. The caller holds the lock."""
        told, specs = [], list(live.fleet.instances)
        wanted, self.wanted = self.wanted, {}
        for i, spec in wanted.items():
            specs[i] = replace(specs[i], prefill_scale=spec.prefill_scale, decode_scale=spec.decode_scale)
            live.refined[i] = live.refined.get(i, 0) + 1
            scales = spec.prefill_scale, spec.decode_scale
            known = self.told.get(i, (1.0, 1.0))
            if any(abs(new / old - 1.0) > TOLD for new, old in zip(scales, known, strict=True)):
                self.told[i] = scales
                told.append(f"{spec.name}: prefill now x{scales[0]:.2f}, decode x{scales[1]:.2f} of its profile")
        if wanted:
            live.fleet = replace(live.fleet, instances=tuple(specs))
            take_costs(live)
        return told


def recent(served: list[Served]) -> list[Served]:
    """The calls of the last WINDOW_S before the newest, in the order of their sending."""
    served.sort()
    return [call for call in served if call.sent_s >= served[-1].sent_s - WINDOW_S]


def is_off(seen: Compared) -> bool:
    """Whether enough calls say that the costs are wrong."""
    return seen.calls >= LEAST and max(abs(seen.ttft_drift), abs(seen.tpot_drift)) > TOLERATED


def halfway(old: InstanceSpec, new: InstanceSpec) -> InstanceSpec:
    """Half of the way from one spec's factors to the other's: calls differ, and so do loads."""
    prefill = math.sqrt(old.prefill_scale * new.prefill_scale)
    decode = math.sqrt(old.decode_scale * new.decode_scale)
    return replace(old, prefill_scale=round(prefill, 4), decode_scale=round(decode, 4))


def as_row(seen: Compared) -> dict[str, Any]:
    """The comparison as the pages have it, s."""
    row: dict[str, Any] = {"compared": seen.calls, "ttft_drift": seen.ttft_drift, "tpot_drift": seen.tpot_drift}
    return row | {name: getattr(seen, name) for name in ("predicted_ttft_s", "ttft_s", "predicted_tpot_s", "tpot_s")}
