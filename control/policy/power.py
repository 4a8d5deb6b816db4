"""Watts of an instance by what it does."""

from control.jit import compiled
from control.policy.tables import Costs


@compiled
def run_w(costs: Costs, profile: int, b: int, p: int) -> float:
    """Power while an iteration runs `b` decoding sequences beside `p` prefill tokens, W.

    Decode alone draws the profile's curve of B. A mixed iteration lies between that and the prefill draw, by the
    share of prefill tokens in the iteration.
    """
    decode = costs.power_w[profile, b]
    if p == 0:
        return decode
    return decode + (costs.profiles[profile]["prefill_w"] - decode) * (p / (p + b))
