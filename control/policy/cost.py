"""What an iteration costs and what a call is estimated to take.

Symbols as in the cost model: B decoding sequences, K (= S) their KV tokens, P prefill tokens, T = P + B, kvp
context already held by the prefilling sequences, area = sum of P (kvp + P / 2). All kernels in ms, estimates in s.
"""

from control.jit import compiled
from control.policy.tables import Costs, Record, Table


@compiled
def series_ms(first: float, slope: float, n: int) -> float:
    """Sum of first + slope j for j = 0 .. n - 1."""
    return n * first + slope * (0.5 * n * (n - 1))


@compiled
def max_series_ms(a: float, s: float, b: float, r: float, n: int) -> float:
    """Sum over j = 0 .. n - 1 of max(a + s j, b + r j): two lines that cross at most once."""
    end = n - 1.0
    if a >= b and a + s * end >= b + r * end:
        return series_ms(a, s, n)
    if b >= a and b + r * end >= a + s * end:
        return series_ms(b, r, n)
    before = min(n - 1, max(1, int(abs(a - b) / abs(r - s)) + 1))  # terms for which the higher start leads
    if a >= b:
        return series_ms(a, s, before) + series_ms(b + r * before, r, n - before)
    return series_ms(b, r, before) + series_ms(a + s * before, s, n - before)


@compiled
def decode_run_ms(costs: Costs, profile: int, host_ms: float, b: int, k: int, n: int) -> float:
    """Duration of `n` decode-only iterations of `b` sequences that hold `k` KV tokens at the start, ms.

    One iteration costs max over lines of base(B) + a2 K, and K grows by B an iteration.
    """
    row = costs.profiles[profile]
    kv_0, kv_1 = row["kv_ms_0"], row["kv_ms_1"]
    first_0 = host_ms + costs.decode_ms[profile, 0, b] + kv_0 * k
    if kv_1 == 0.0 and costs.decode_ms[profile, 1, b] == 0.0:
        return series_ms(first_0, kv_0 * b, n)
    first_1 = host_ms + costs.decode_ms[profile, 1, b] + kv_1 * k
    return max_series_ms(first_0, kv_0 * b, first_1, kv_1 * b, n)


@compiled
def mixed_ms(costs: Costs, profile: int, host_ms: float, b: int, k: int, p: int, kvp: float, area: float) -> float:
    """Duration of one iteration with `p` prefill tokens beside `b` decoding sequences, ms."""
    row = costs.profiles[profile]
    if row["additive"] == 1:
        step = decode_run_ms(costs, profile, 0.0, b, k, 1) if b > 0 else row["mix_base_ms"]
        return host_ms + step + row["mix_token_ms"] * p + row["mix_area_ms"] * area
    ms = host_ms + costs.mix_ms[profile, p + b] + row["mix_kv_ms"] * k + row["mix_area_ms"] * area
    return ms + row["mix_seq_ms"] * b + row["mix_ctx_ms"] * kvp


@compiled
def chunk_area(held: float, p: float) -> float:
    """Attention area of `p` prefill tokens behind `held` tokens of context: P (kvp + P / 2)."""
    return p * (held + 0.5 * p)


@compiled
def prefill_alone_s(costs: Costs, instance: Record, tokens: int, held: int) -> float:
    """Time to prefill `tokens` behind `held` tokens of context, in chunks, alone on the instance, s."""
    profile, host_ms = instance["profile"], instance["host_ms"]
    size = instance["max_num_batched_tokens"]
    total_ms, done = 0.0, 0
    while done < tokens:
        p = min(size, tokens - done)
        kvp = held + done
        total_ms += mixed_ms(costs, profile, host_ms, 0, 0, p, kvp, chunk_area(kvp, p))
        done += p
    return total_ms * 1e-3


@compiled
def decode_alone_s(costs: Costs, instance: Record, context: float, steps: float) -> float:
    """Time of `steps` decode iterations from `context` tokens on, alone; steps may be a mean, s."""
    if steps <= 0.0:
        return 0.0
    row = costs.profiles[instance["profile"]]
    middle = context + 0.5 * (steps - 1.0)
    one_ms = costs.decode_ms[instance["profile"], 0, 1] + row["kv_ms_0"] * middle
    two_ms = costs.decode_ms[instance["profile"], 1, 1] + row["kv_ms_1"] * middle
    return steps * (instance["host_ms"] + max(one_ms, two_ms)) * 1e-3


@compiled
def exec_s(costs: Costs, instance: Record, tokens: int, held: int, outputs: float) -> float:
    """t_comp: execution time of a call alone on the instance, s (HexGen-Flow, section 1).

    `tokens` of input of which `held` stand in its prefix cache; `outputs` is the historical mean of the step,
    never the true length.
    """
    prefill = prefill_alone_s(costs, instance, tokens - held, held)
    return prefill + decode_alone_s(costs, instance, tokens, outputs - 1.0)


@compiled
def mean_prefill_s(costs: Costs, instances: Table, tokens: int) -> float:
    """Prefill time of `tokens`, averaged over the fleet, s (HexGen-Flow, section 2)."""
    total = 0.0
    for i in range(len(instances)):
        total += prefill_alone_s(costs, instances[i], tokens, 0)
    return total / len(instances)


@compiled
def mean_decode_s(costs: Costs, instances: Table, tokens: int, outputs: float) -> float:
    """Decode time of `outputs` tokens behind `tokens` of input, averaged over the fleet, s."""
    total = 0.0
    for i in range(len(instances)):
        total += decode_alone_s(costs, instances[i], tokens, outputs - 1.0)
    return total / len(instances)
