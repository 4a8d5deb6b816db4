"""The policy in force, and what it means for conversations."""

from dataclasses import dataclass

from control.policy.codes import AMPD, COLLOCATED, CONSERVE, FULL_DISAGG, SESSION


@dataclass
class Rules:
    """The policy in force."""

    dispatch: int
    queue: int
    alpha: float
    floor: float
    aging_s: float
    need: int
    router: int
    error: float
    idle_ttl_s: float

    @property
    def sets_aside(self) -> bool:
        """Whether KV is set aside for conversations."""
        return self.dispatch in (COLLOCATED, FULL_DISAGG, CONSERVE, AMPD)

    @property
    def hands_over(self) -> bool:
        """Whether a call may prefill on one instance and decode on another."""
        return self.dispatch in (FULL_DISAGG, CONSERVE, AMPD)

    @property
    def pins(self) -> bool:
        """Whether later turns go where the conversation's KV is."""
        return self.dispatch in (SESSION, COLLOCATED, CONSERVE, AMPD)

    @property
    def reuses(self) -> bool:
        """Whether a call may use what others left in a cache."""
        return self.dispatch != FULL_DISAGG
