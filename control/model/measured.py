"""What a calibration measures of a server: durations, each of one iteration or of several in a row."""

from typing import NamedTuple


class Iteration(NamedTuple):
    """What one iteration of the engine held; symbols as in profile.py."""

    decoding: int  # B, sequences
    kv: float  # S = K, KV tokens of those
    prefill: int = 0  # P, tokens
    held: int = 0  # kvp, context of the prefilling sequence, tokens

    @property
    def tokens(self) -> int:
        """T = P + B."""
        return self.prefill + self.decoding

    @property
    def area(self) -> float:
        """P (kvp + P / 2), tokens^2."""
        return self.prefill * (self.held + 0.5 * self.prefill)


class Point(NamedTuple):
    """One measured duration: the sum of its iterations, median over repeats."""

    regime: str  # "decode": no prefill in it; "prefill": nothing else; "mixed": both
    ms: float
    iterations: tuple[Iteration, ...]


class Limits(NamedTuple):
    """What a server says of itself; None where it does not."""

    model: str
    version: str = ""
    max_model_len: int | None = None  # tokens
    kv_tokens: int | None = None
    block_size: int | None = None  # tokens
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None


def chunked(tokens: int, budget: int, held: int = 0) -> tuple[Iteration, ...]:
    """The iterations that prefill `tokens` tokens alone behind `held` tokens, `budget` tokens at most in each."""
    starts = range(0, tokens, budget)
    return tuple(Iteration(0, 0.0, min(budget, tokens - start), held + start) for start in starts)
