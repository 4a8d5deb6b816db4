"""What one model replica costs on one kind of GPU: the nouns of the iteration cost model.

Symbols: B decoding sequences, K = S their KV tokens, P prefill tokens, T = P + B, kvp the context held by the
prefilling requests (tokens), area = P (kvp + P/2) (tokens^2). All times are ms, without host overhead.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

GIB = float(2**30)
Floats = npt.NDArray[np.float64]


class Curve(NamedTuple):
    """A piecewise-linear, non-decreasing cost in ms over a count; the last segment goes on."""

    x: tuple[float, ...]  # knots, ascending, the first is 0
    y: tuple[float, ...]  # ms at the knots

    def at(self, count: npt.ArrayLike) -> Floats:
        """Cost in ms at each `count`, same shape."""
        counts = np.asarray(count, np.float64)
        inside = np.interp(counts, self.x, self.y)
        slope = (self.y[-1] - self.y[-2]) / (self.x[-1] - self.x[-2])
        return np.asarray(inside + slope * np.maximum(counts - self.x[-1], 0.0), np.float64)

    @classmethod
    def from_slopes(cls, intercept: float, knots: list[float], slopes: list[float]) -> "Curve":
        """The curve that starts at `intercept` and has slopes[i] up to knots[i], the last slope beyond."""
        ends = [*knots, 2.0 * knots[-1]]
        widths = np.diff([0.0, *ends])
        heights = intercept + np.cumsum(widths * np.asarray(slopes))
        return cls((0.0, *ends), (intercept, *(float(h) for h in heights)))


class DecodeLine(NamedTuple):
    """`base(B) + kv_ms K`; a decode-only iteration costs the largest of a profile's lines."""

    base: Curve
    kv_ms: float  # ms per KV token


class MixedCost(NamedTuple):
    """An iteration with prefill in it, in one of two forms.

    plain:    tokens(T) + kv_ms S + area_ms area + seq_ms B + ctx_ms kvp
    additive: (decode(B, S) if B > 0 else base_ms) + token_ms P + area_ms area
    """

    tokens: Curve | None  # None: the additive form
    area_ms: float
    kv_ms: float = 0.0
    seq_ms: float = 0.0
    ctx_ms: float = 0.0
    base_ms: float = 0.0
    token_ms: float = 0.0


class PowerLevels(NamedTuple):
    """Draw of one GPU: W when idle, else shares of the TDP."""

    idle_w: float
    one: float  # decoding 1 sequence
    many: float  # decoding 256 sequences or more
    prefill: float


@dataclass(frozen=True)
class Profile:
    """Costs, memory and power of a model on `gpus` GPUs of one kind.

    `provenance` is "measured" (the figures themselves), "fitted" (a fit of measurements of this very pair) or
    "estimated" (scaled from another pair); `source` says from what, in one line.
    """

    gpu: str
    model: str
    gpus: int
    provenance: str
    source: str
    decode: tuple[DecodeLine, ...]  # one line, or two with a knee between them
    mixed: MixedCost
    memory_gib: float  # per GPU
    memory_share: float  # of it that the engine may fill
    reserved_gib: float  # per instance, for activations and graphs
    weight_bytes: float
    kv_bytes_per_token: int
    max_model_len: int  # tokens
    tdp_w: float  # per GPU
    power: PowerLevels
    kv_link_gb_s: float  # KV transfer to another instance, GB/s
    kv_link_ms: float  # fixed part of a KV transfer
    send_ms: float = 0.0  # ms the sender is held up by a KV transfer, fixed part; 0: it goes on meanwhile
    send_token_ms: float = 0.0  # same, per KV token
    cap_measured: bool = False  # the slowdown under a power cap was measured on this pair

    @property
    def kv_link_token_ms(self) -> float:
        """Time of a KV transfer per token, ms."""
        return self.kv_bytes_per_token / (self.kv_link_gb_s * 1e6)

    @property
    def needed_gib(self) -> float:
        """Weights and reserve of the instance, GiB."""
        return self.weight_bytes / GIB + self.reserved_gib

    def available_gib(self, gpus: int | None = None) -> float:
        """Memory the engine may fill on `gpus` GPUs (default: this profile's), GiB."""
        return self.memory_share * self.memory_gib * (self.gpus if gpus is None else gpus)

    def kv_tokens(self, gpus: int | None = None) -> int:
        """KV capacity in tokens on `gpus` GPUs: what weights and reserve leave, 0 if they do not fit."""
        free = self.available_gib(gpus) - self.needed_gib
        return max(0, int(free * GIB // self.kv_bytes_per_token))
