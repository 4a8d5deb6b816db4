"""Scaling a fitted profile to another GPU, model or tensor-parallel width.

Across GPUs decode goes with memory bandwidth and prefill with dense bf16 FLOP/s (datasheet-only error
8-17 %). Across models the fixed part goes with weight bytes, the KV slopes with KV bytes a token, the
token slopes with active parameters, the prefill area with the attention width. Tensor parallelism over n
GPUs divides every term by 0.85 n. No floor is set for kernel launches, so small models on fast GPUs come
out optimistic.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from control.model.catalogue import Catalogue, Model
from control.model.profile import Curve, DecodeLine, MixedCost, Profile


class Factors(NamedTuple):
    """Target over reference, by what a term scales with."""

    weights: float  # fixed part of an iteration
    kv: float  # per KV token
    sequence: float  # per decoding sequence
    token: float  # per token of a mixed iteration
    area: float  # per token^2 of prefill area


def scale_factors(
    book: Catalogue, base: tuple[str, str], to: tuple[str, str], gpus: int, weight_bytes: float
) -> Factors:
    """Scale factors from the pair `base` on one GPU to the pair `to` on `gpus` GPUs."""
    old_gpu, new_gpu = book.gpu(base[0]), book.gpu(to[0])
    old, new = book.model(base[1]), book.model(to[1])
    split = 1.0 if gpus == 1 else 1.0 / (gpus * book.scaling["tensor_parallel_efficiency"])
    memory = split * old_gpu.memory_gb_s / new_gpu.memory_gb_s
    compute = split * old_gpu.bf16_tflops / new_gpu.bf16_tflops
    active = new.active_parameters / old.active_parameters
    return Factors(
        weights=memory * weight_bytes / old.weight_bytes,
        kv=memory * new.kv_bytes_per_token / old.kv_bytes_per_token,
        sequence=memory * active,
        token=compute * active,
        area=compute * new.attention_width / old.attention_width,
    )


def _read_share(sizes: Model, tokens: float) -> float:
    """Share of the weights that `tokens` tokens make an iteration read: all, but for a mixture of experts.

    Each token picks its experts alike, so an expert stays unread with (1 - picked / all)^tokens.
    """
    if not sizes.experts:
        return 1.0
    unread = float((1.0 - sizes.experts_per_token / sizes.experts) ** tokens)
    return 1.0 - unread * sizes.expert_parameters / sizes.parameters


def _scaled_curve(curve: Curve, fixed: float, slope: float, sizes: Model) -> Curve:
    """Intercept times `fixed` and the share of the weights read, rise times `slope`."""
    knots = sorted({*curve.x, 1.0, 2.0, 4.0, 8.0, 64.0, 128.0} if sizes.experts else curve.x)
    heights = [
        curve.y[0] * fixed * _read_share(sizes, max(x, 1.0)) + (float(curve.at(x)) - curve.y[0]) * slope for x in knots
    ]
    return Curve(tuple(knots), tuple(float(h) for h in np.maximum.accumulate(heights)))


def scaled_line(line: DecodeLine, by: Factors, sizes: Model) -> DecodeLine:
    """The decode line with each term scaled, for a model of these sizes."""
    return DecodeLine(_scaled_curve(line.base, by.weights, by.sequence, sizes), line.kv_ms * by.kv)


def lifted_line(line: DecodeLine, intercept_ms: float) -> DecodeLine:
    """The line moved so that it starts at the measured intercept."""
    up = intercept_ms - line.base.y[0]
    return line._replace(base=Curve(line.base.x, tuple(y + up for y in line.base.y)))


def scaled_mixed(mixed: MixedCost, by: Factors, sizes: Model) -> MixedCost:
    """The mixed cost with each term scaled, for a model of these sizes."""
    tokens = mixed.tokens and _scaled_curve(mixed.tokens, by.weights, by.token, sizes)
    return MixedCost(
        tokens=tokens,
        area_ms=mixed.area_ms * by.area,
        kv_ms=mixed.kv_ms * by.kv,
        seq_ms=mixed.seq_ms * by.sequence,
        ctx_ms=mixed.ctx_ms * by.kv,
        base_ms=mixed.base_ms * by.weights,
        token_ms=mixed.token_ms * by.token,
    )


def stretched(profile: Profile, prefill: float, decode: float) -> Profile:
    """`profile` with every cost of a mixed iteration times `prefill` and of a decode iteration times `decode`."""
    lines = tuple(DecodeLine(higher(line.base, decode), line.kv_ms * decode) for line in profile.decode)
    numbers = ("area_ms", "kv_ms", "seq_ms", "ctx_ms", "base_ms", "token_ms")
    mixed = profile.mixed._replace(**{name: getattr(profile.mixed, name) * prefill for name in numbers})
    tokens = profile.mixed.tokens
    return replace(profile, decode=lines, mixed=mixed._replace(tokens=tokens and higher(tokens, prefill)))


def higher(curve: Curve, factor: float) -> Curve:
    """The curve times a factor."""
    return Curve(curve.x, tuple(y * factor for y in curve.y))
