"""A setting that was applied, and what it promised."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    back: list[list[Any]] = field(default_factory=list)  # commands that take it back, in order
    set: Row = field(default_factory=dict)  # alpha and policy as it left them

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
        """What `dataclasses.asdict` made of a guard, as a guard."""
        return None if saved is None else cls(**saved)
