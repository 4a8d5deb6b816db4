"""What the gateway counts since its start."""

from dataclasses import dataclass, field


@dataclass
class Totals:
    """Counted since the start."""

    requests: int = 0
    by_state: dict[str, int] = field(default_factory=dict)
    by_match: dict[str, int] = field(default_factory=dict)
    turned_away: int = 0
    faults: int = 0  # a server failed a call
    reroutes: int = 0  # and it went to another one
    hand_overs: int = 0
    hand_over_s: float = 0.0  # from the prefill leg's answer to the decode leg's first byte, sum
    late_hand_overs: int = 0  # longer than the lease
