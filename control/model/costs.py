"""A profile as the arrays the simulator indexes."""

from typing import NamedTuple

import numpy as np

from control.errors import SettingError
from control.model.power import CapFactors, cap_factors, checked_cap, instance_power
from control.model.profile import Floats, MixedCost, Profile


class CostTable(NamedTuple):
    """Iteration cost (ms) and draw (W) of one instance, without host overhead.

    decode-only: max over i of decode_ms[i, B] + decode_kv_ms[i] K
    mixed, plain: mix_ms[T] + mix_kv_ms S + mix_area_ms area + mix_seq_ms B + mix_ctx_ms kvp
    mixed, additive: (decode(B, S) if B > 0 else mix_base_ms) + mix_token_ms P + mix_area_ms area
    """

    decode_ms: Floats  # f8[2, max_seqs + 1], by line and B; B = 0 is 0 and unused
    decode_kv_ms: Floats  # f8[2], ms per KV token; a missing second line is all zero
    mix_ms: Floats  # f8[max_tokens + 1] by T
    mix_kv_ms: float  # per KV token of the decoding sequences
    mix_area_ms: float  # per token^2 of area
    mix_seq_ms: float  # per decoding sequence
    mix_ctx_ms: float  # per token of context held by prefilling requests
    additive: int  # 1: the additive form
    mix_base_ms: float  # additive form only
    mix_token_ms: float  # additive form only, per prefill token
    power_w: Floats  # f8[max_seqs + 1], W of all GPUs of the instance while decoding B; [0] = idle
    prefill_w: float  # W of all GPUs while prefilling
    idle_w: float  # W of all GPUs
    link_ms: float  # fixed part of a KV transfer from here
    link_token_ms: float  # per KV token moved
    send_ms: float  # time it holds up the sender, fixed part
    send_token_ms: float  # same, per KV token


def cost_table(profile: Profile, max_seqs: int, max_tokens: int, power_cap_w: float | None = None) -> CostTable:
    """Tabulate `profile` for up to max_seqs sequences and max_tokens tokens an iteration.

    `power_cap_w` is W per GPU; it slows prefill and decode (measured on the A40 with Qwen3-0.6B, estimated
    from it elsewhere) and limits the draw. SettingError: a size below 1, or a cap outside the GPU's bounds.
    """
    for name, size in (("max_seqs", max_seqs), ("max_tokens", max_tokens)):
        if size < 1:
            raise SettingError(f"{name} = {size} is out of bounds: at least 1")
    cap_w = checked_cap(profile, power_cap_w)
    factors = cap_factors(profile, cap_w)
    decode_ms, decode_kv_ms = _decode(profile, max_seqs, factors.decode)
    mixed = profile.mixed
    power = instance_power(profile, max_seqs, cap_w)
    return CostTable(
        decode_ms=decode_ms,
        decode_kv_ms=decode_kv_ms,
        mix_ms=_mix(mixed, max_tokens, factors),
        mix_kv_ms=mixed.kv_ms * factors.decode,
        mix_area_ms=mixed.area_ms * factors.area,
        mix_seq_ms=mixed.seq_ms * factors.decode,
        mix_ctx_ms=mixed.ctx_ms * factors.decode,
        additive=int(mixed.tokens is None),
        mix_base_ms=mixed.base_ms * factors.base,
        mix_token_ms=mixed.token_ms * factors.token,
        power_w=power.decode_w,
        prefill_w=power.prefill_w,
        idle_w=power.idle_w,
        link_ms=profile.kv_link_ms,
        link_token_ms=profile.kv_link_token_ms,
        send_ms=profile.send_ms,
        send_token_ms=profile.send_token_ms,
    )


def _decode(profile: Profile, max_seqs: int, slowdown: float) -> tuple[Floats, Floats]:
    base_ms, kv_ms = np.zeros((2, max_seqs + 1)), np.zeros(2)
    for i, line in enumerate(profile.decode):
        base_ms[i, 1:] = line.base.at(np.arange(1, max_seqs + 1)) * slowdown
        kv_ms[i] = line.kv_ms * slowdown
    return base_ms, kv_ms


def _mix(mixed: MixedCost, max_tokens: int, factors: CapFactors) -> Floats:
    """mix(T): reading the weights slows as decode does, the work per token as prefill does."""
    if mixed.tokens is None:
        return np.zeros(max_tokens + 1)
    free_ms = mixed.tokens.at(np.arange(max_tokens + 1))
    base_ms = mixed.tokens.y[0]
    return np.asarray(base_ms * factors.decode + (free_ms - base_ms) * factors.token, np.float64)
