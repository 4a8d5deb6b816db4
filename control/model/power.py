"""Power of a replica by phase, and what a power cap costs in time.

Decoding: a logistic in log2(B), `share(B) = one + (many - one) (g(B) - g(1)) / (g(256) - g(1))` of the
TDP with `g(B) = 1 / (1 + exp(-steepness (log2 B - midpoint)))`, flat beyond B = 256. Its four numbers
were fitted by least squares on relative errors to an H100 SXM decoding Llama-3.1-8B: 320 W at B = 1, 486
at 8, 610 at 64, 669 at 128, 690 at 255 (largest error 1.7 %, mean 0.8 %). Other GPUs take the same shares
of their own TDP, an A100 the 0.43-0.46 measured on it. Idle is measured where known, else 0.13 of the
TDP.

A cap of C watts cuts whatever would exceed it: prefill draws 0.97 C at most (all of C where a GPU's own
prefill share says so), decoding C. On the A40 with Qwen3-0.6B the shares of the TDP at 1 and at 256
sequences, 0.72 and 1.0, are fitted on three of the tokens-per-joule cells of ConServe, section 6.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from control.errors import SettingError
from control.model.catalogue import Gpu, catalogue
from control.model.profile import Floats, PowerLevels, Profile


class InstancePower(NamedTuple):
    """Draw of a whole replica, all its GPUs, W."""

    decode_w: Floats  # f8[max_seqs + 1] by decoding sequences; [0] = idle
    prefill_w: float
    idle_w: float


class CapFactors(NamedTuple):
    """Time under a power cap over time without one, by term of the iteration cost."""

    base: float  # fixed part of a prefill iteration
    token: float  # per prefill token
    area: float  # per token^2 of prefill area
    decode: float  # everything that decoding costs


def power_levels(gpu: Gpu) -> PowerLevels:
    """The GPU's own measured levels, else the catalogue's common shares of its TDP."""
    common = catalogue().power
    one, many = gpu.decode_share or (common["one"], common["many"])
    idle_w = gpu.idle_w if gpu.idle_w is not None else common["idle"] * gpu.tdp_w
    prefill = gpu.prefill_share if gpu.prefill_share is not None else common["prefill"]
    return PowerLevels(idle_w, one, many, prefill)


def cap_bounds(profile: Profile) -> tuple[float, float]:
    """Smallest and largest power cap, W per GPU: 0.35 of the TDP (above idle), and the TDP."""
    lowest = catalogue().power["lowest_cap"] * profile.tdp_w
    return max(lowest, 1.25 * profile.power.idle_w), profile.tdp_w


def checked_cap(profile: Profile, power_cap_w: float | None) -> float:
    """The cap in W per GPU, the TDP for None; SettingError names the bounds when it is outside them."""
    low, high = cap_bounds(profile)
    if power_cap_w is None:
        return high
    if high == 0.0:
        raise SettingError(f"power_cap_w = {power_cap_w:g}: the power of a {profile.gpu} is not known, it takes no cap")
    if not low <= power_cap_w <= high:
        raise SettingError(
            f"power_cap_w = {power_cap_w:g} is out of bounds: a {profile.gpu} takes {low:g} to {high:g} W"
        )
    return float(power_cap_w)


def cap_factors(profile: Profile, cap_w: float) -> CapFactors:
    """Slowdown at `cap_w` W per GPU, linear in the cap through the A40 lines of ConServe, section 4.

    On the pair measured there these are the measured lines at 300 and 200 W, drawn on below. Any other pair
    is an estimate: the same ratios at the same share of its TDP, and no term becomes faster.
    """
    table = catalogue().capped
    share = cap_w / profile.tdp_w if profile.tdp_w > 0.0 else 1.0
    reach = (1.0 - share) / (table["cap_share"][0] - table["cap_share"][1])
    ratios = [table[term][1] / table[term][0] for term in ("base_ms", "token_ms", "area_ms", "decode")]
    least = -np.inf if profile.cap_measured else 1.0
    return CapFactors(*(max(least, 1.0 + reach * (ratio - 1.0)) for ratio in ratios))


def decode_share(levels: PowerLevels, sequences: npt.ArrayLike) -> Floats:
    """Share of the TDP drawn while decoding this many sequences (>= 1), same shape."""
    shape = catalogue().power
    b = np.clip(np.asarray(sequences, np.float64), 1.0, shape["flat_at"])
    g, g_one, g_many = (_logistic(v, shape["midpoint"], shape["steepness"]) for v in (b, 1.0, shape["flat_at"]))
    return np.asarray(levels.one + (levels.many - levels.one) * (g - g_one) / (g_many - g_one), np.float64)


def instance_power(profile: Profile, max_seqs: int, cap_w: float) -> InstancePower:
    """Draw of the replica for 0 to max_seqs sequences under `cap_w` W per GPU (the TDP: uncapped)."""
    levels, tdp_w = profile.power, profile.tdp_w
    free_w = decode_share(levels, np.arange(1, max_seqs + 1)) * tdp_w
    decode_w = np.empty(max_seqs + 1)
    decode_w[0] = levels.idle_w
    decode_w[1:] = np.minimum(free_w, cap_w)
    near_cap_w = max(catalogue().power["prefill"], levels.prefill) * cap_w
    prefill_w = min(levels.prefill * tdp_w, near_cap_w)
    return InstancePower(decode_w * profile.gpus, prefill_w * profile.gpus, levels.idle_w * profile.gpus)


def _logistic(count: npt.ArrayLike, midpoint: float, steepness: float) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-steepness * (np.log2(count) - midpoint))), np.float64)
