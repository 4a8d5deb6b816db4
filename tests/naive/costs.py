"""What an iteration of one instance costs, in plain numbers.

The closed-form sums are the model's own, in its order of operations: a loop over iterations would differ in the last
bits. tests/policy checks them against that loop.
"""

from dataclasses import dataclass

from control.twin.world import World


@dataclass(frozen=True)
class CostModel:
    """Tables of one instance's profile; times in ms."""

    row: dict[str, float]  # the scalars of policy.tables.PROFILE
    lines: list[list[float]]  # base of a decode iteration by sequences, two lines
    mix: list[float]  # base of a mixed iteration by tokens
    watts: list[float]  # by decoding sequences
    host_ms: float
    chunk: int  # max_num_batched_tokens

    @classmethod
    def of(cls, world: World, i: int) -> "CostModel":
        """The cost model of instance `i`."""
        instance, costs = world.instances[i], world.costs
        p = int(instance["profile"])
        return cls(
            row={name: costs.profiles[p][name].item() for name in costs.profiles.dtype.names or ()},
            lines=costs.decode_ms[p].tolist(),
            mix=costs.mix_ms[p].tolist(),
            watts=costs.power_w[p].tolist(),
            host_ms=float(instance["host_ms"]),
            chunk=int(instance["max_num_batched_tokens"]),
        )

    def decode_ms(self, b: int, k: int, n: int) -> float:
        """`n` decode iterations of `b` sequences that hold `k` tokens at the start."""
        return self._lines_ms(self.host_ms, b, k, n)

    def _lines_ms(self, host_ms: float, b: int, k: int, n: int) -> float:
        slopes = (self.row["kv_ms_0"], self.row["kv_ms_1"])
        one = host_ms + self.lines[0][b] + slopes[0] * k
        if slopes[1] == 0.0 and self.lines[1][b] == 0.0:
            return series(one, slopes[0] * b, n)
        two = host_ms + self.lines[1][b] + slopes[1] * k
        return larger_series(one, slopes[0] * b, two, slopes[1] * b, n)

    def mixed_ms(self, b: int, k: int, prefills: list[tuple[int, int]]) -> float:
        """One iteration with `prefills` = (context held, tokens) beside `b` sequences that hold `k` tokens."""
        p = sum(tokens for _, tokens in prefills)
        kvp = sum(held for held, _ in prefills)
        area = sum(tokens * (held + 0.5 * tokens) for held, tokens in prefills)  # exact: multiples of 1/2
        row = self.row
        if row["additive"]:
            step = self._lines_ms(0.0, b, k, 1) if b else row["mix_base_ms"]
            return self.host_ms + step + row["mix_token_ms"] * p + row["mix_area_ms"] * area
        ms = self.host_ms + self.mix[p + b] + row["mix_kv_ms"] * k + row["mix_area_ms"] * area
        return ms + row["mix_seq_ms"] * b + row["mix_ctx_ms"] * kvp

    def power_w(self, b: int, p: int) -> float:
        """Draw of an iteration with `p` prefill tokens beside `b` decoding sequences."""
        if not p:
            return self.watts[b]
        return self.watts[b] + (self.row["prefill_w"] - self.watts[b]) * (p / (p + b))

    def exec_s(self, tokens: int, outputs: float, held: int = 0) -> float:
        """A call alone, `held` tokens of whose input are cached: prefill, then decoding."""
        return self.prefill_s(tokens, held) + self.decode_s(tokens, outputs)

    def prefill_s(self, tokens: int, held: int = 0) -> float:
        """What is left of a prompt of `tokens` tokens behind `held`, alone, in chunks."""
        total_ms = 0.0
        while held < tokens:
            p = min(self.chunk, tokens - held)
            total_ms += self.mixed_ms(0, 0, [(held, p)])
            held += p
        return total_ms * 1e-3

    def decode_s(self, tokens: int, outputs: float) -> float:
        """outputs - 1 decode iterations alone, at their mean context."""
        steps = outputs - 1.0
        if steps <= 0.0:
            return 0.0
        middle = tokens + 0.5 * (steps - 1.0)
        lines = [self.lines[x][1] + self.row[f"kv_ms_{x}"] * middle for x in (0, 1)]
        return steps * (self.host_ms + max(lines)) * 1e-3

    def transfer_ms(self, tokens: int) -> float:
        """Moving the KV of `tokens` tokens from here to anywhere."""
        return self.row["link_ms"] + self.row["link_token_ms"] * tokens

    def send_ms(self, tokens: int) -> float:
        """How long the sender of the KV of `tokens` tokens can do nothing else."""
        return self.row["send_ms"] + self.row["send_token_ms"] * tokens

    def append_ms(self, held: int, tokens: int, b: int, k: int) -> float:
        """One iteration of `tokens` behind `held`, as far as the budget goes, beside `b` sequences of `k` tokens."""
        return self.mixed_ms(b, k, [(held, min(tokens, self.chunk - b))])


def series(first: float, slope: float, n: int) -> float:
    """Sum of first + slope j for j = 0 .. n - 1."""
    return n * first + slope * (0.5 * n * (n - 1))


def larger_series(a: float, s: float, b: float, r: float, n: int) -> float:
    """Sum of max(a + s j, b + r j) for j = 0 .. n - 1: the line that starts higher, then the other."""
    if a < b:
        a, s, b, r = b, r, a, s
    elif a == b and r > s:
        return series(b, r, n)
    if a + s * (n - 1.0) >= b + r * (n - 1.0):
        return series(a, s, n)
    lead = min(n - 1, max(1, int((a - b) / (r - s)) + 1))
    return series(a, s, lead) + series(b + r * lead, r, n - lead)
