"""A setting that was applied, and what it promised."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

Row = dict[str, Any]
WATCHING, KEPT, ROLLED_BACK, REPLACED, ENDED = "watching", "kept", "rolled_back", "replaced", "ended"


@dataclass
class Guard:
    """A promise under watch. Times are simulated seconds."""

    run_id: int
    setting: int  # its place in the run
    name: str
    made_s: float
    until_s: float
    low_s: float  # the predicted band of P95 at that time
    high_s: float
    things: dict[str, list[Any]]  # what applying it changed: how each was, how it was left
    command: int | None  # which applied it
    set: Row = field(default_factory=dict)  # alpha and policy as it left them
    told_p95_s: float | None = None  # the P95 that the run tells so far
    told_at_s: float = 0.0  # and since when

    def told(self, state: str, realised_s: float | None = None, why: str = "") -> Row:
        """The guard as the run tells it."""
        return {
            "setting": self.setting,
            "until_sim_s": self.until_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "state": state,
            "realised_p95_s": realised_s,
            "why": why,
        }

    @classmethod
    def of(cls, saved: Mapping[str, Any] | None) -> "Guard | None":
        """What `dataclasses.asdict` made of a guard, as a guard; None where an earlier version made it."""
        names = {field.name for field in fields(cls)}
        if saved is None or saved.keys() != names:
            return None
        high_s = math.inf if saved["high_s"] is None else saved["high_s"]  # JSON knows no infinity
        return cls(**(dict(saved) | {"high_s": high_s}))
