"""Placing conversations (ConServe, section 2): observe, never predict.

What ConServe's rules are given is what can be seen: the tokens of a context and how much KV each instance has set
aside. Lengths to come are not among their arguments; only the oracle need, which exists for comparison, is.
"""

import math

from control.jit import compiled
from control.policy.codes import (
    AMPD,
    COLLOCATED,
    CONSERVE,
    FULL_DISAGG,
    ORACLE,
    PREFILL_ROLE,
    SESSION,
    UP,
)
from control.policy.cost import chunk_area, decode_run_ms, mixed_ms, prefill_alone_s
from control.policy.tables import Costs, Floats, Record, Table


@compiled
def places_conversations(policy: Record) -> bool:
    """Whether the dispatch rule in force keeps KV for conversations as a whole."""
    return policy["dispatch"] >= COLLOCATED


@compiled
def hands_over(policy: Record) -> bool:
    """Whether a call may prefill on one instance and decode on another under the rule in force."""
    dispatch = policy["dispatch"]
    return dispatch == CONSERVE or dispatch == FULL_DISAGG or dispatch == AMPD


@compiled
def pins(policy: Record) -> bool:
    """Whether later turns go to the instance that holds the conversation's KV."""
    dispatch = policy["dispatch"]
    return dispatch == SESSION or (dispatch >= COLLOCATED and dispatch != FULL_DISAGG)


@compiled
def reuses_context(policy: Record) -> bool:
    """Whether a turn may use what the turns before it left in a cache: not under full disaggregation."""
    return policy["dispatch"] != FULL_DISAGG


@compiled
def blocks_for(tokens: int, block_size: int) -> int:
    """KV blocks that hold `tokens` tokens."""
    return (tokens + block_size - 1) // block_size


@compiled
def needed_blocks(policy: Record, instance: Record, context: int, peak: int) -> int:
    """Blocks an instance must have unreserved to take a conversation, at most all of them (ConServe, section 2).

    `context` is what it holds now, `peak` the most it will ever hold, which only the oracle need looks at.
    """
    tokens = peak if policy["need"] == ORACLE else context
    return min(blocks_for(tokens, instance["block_size"]), instance["blocks"])


@compiled
def free_blocks(instance: Record) -> int:
    """Budget minus reserved, blocks (ConServe, section 2); negative where contexts outgrew what was set aside."""
    return instance["blocks"] - instance["reserved"]


@compiled
def is_prefiller(instance: Record) -> bool:
    """Whether the instance belongs to the prefill tier."""
    return instance["role"] == PREFILL_ROLE


@compiled
def may_prefill(instance: Record, tokens: int) -> bool:
    """Whether the instance is of the prefill tier, up, and takes a prompt of `tokens` tokens."""
    return is_prefiller(instance) and instance["state"] == UP and tokens + 1 <= instance["max_model_len"]


@compiled
def may_decode(policy: Record, instance: Record, context: int) -> bool:
    """Whether the instance is up and could add a token to a context of `context` tokens.

    The prefill tier decodes only where there are no tiers: under collocation every instance does all.
    """
    if is_prefiller(instance) and policy["dispatch"] != COLLOCATED:
        return False
    return instance["state"] == UP and context + 1 <= instance["max_model_len"]


@compiled
def score_prefillers(instances: Table, tokens: int, scores: Floats) -> bool:
    """Fill `scores` [n] with minus the queued seconds of the prefill tier, -inf elsewhere; whether any may prefill.

    With several prefillers the least queued prefill seconds win (the paper gives no rule).
    """
    found = False
    for i in range(len(instances)):
        scores[i] = -math.inf
        if may_prefill(instances[i], tokens):
            scores[i] = -instances[i]["queued_work_s"]
            found = True
    return found


@compiled
def score_decoders(policy: Record, instances: Table, context: int, peak: int, scores: Floats) -> bool:
    """Fill `scores` [n] with the unreserved blocks of instances that have the need free, else -inf; whether any has.

    `context` and `peak` as in `needed_blocks`.
    """
    found = False
    for i in range(len(instances)):
        scores[i] = -math.inf
        if may_decode(policy, instances[i], context):
            if free_blocks(instances[i]) >= needed_blocks(policy, instances[i], context, peak):
                scores[i] = float(free_blocks(instances[i]))
                found = True
    return found


@compiled
def score_any_decoder(policy: Record, instances: Table, context: int, scores: Floats) -> bool:
    """As `score_decoders`, whatever they have free; whether any may decode the context."""
    found = False
    for i in range(len(instances)):
        scores[i] = -math.inf
        if may_decode(policy, instances[i], context):
            scores[i] = float(free_blocks(instances[i]))
            found = True
    return found


@compiled
def has_decoder(policy: Record, instances: Table, context: int) -> bool:
    """Whether any instance may decode a context of `context` tokens."""
    for i in range(len(instances)):
        if may_decode(policy, instances[i], context):
            return True
    return False


@compiled
def transfer_ms(costs: Costs, instance: Record, tokens: int) -> float:
    """net(L): time to move the KV of `tokens` tokens from the instance, ms (ConServe, section 5)."""
    row = costs.profiles[instance["profile"]]
    return row["link_ms"] + row["link_token_ms"] * tokens


@compiled
def send_ms(costs: Costs, instance: Record, tokens: int) -> float:
    """Time the instance is held up by handing over `tokens` tokens of KV, ms; 0 where sending runs beside work."""
    row = costs.profiles[instance["profile"]]
    return row["send_ms"] + row["send_token_ms"] * tokens


@compiled
def append_ms(costs: Costs, instance: Record, held: int, tokens: int, b: int, k: int) -> float:
    """Iteration of `tokens` appended behind `held` beside `b` decoding sequences with `k` KV tokens, ms."""
    p = min(tokens, instance["max_num_batched_tokens"] - b)
    area = chunk_area(held, p)
    return mixed_ms(costs, instance["profile"], instance["host_ms"], b, k, p, held, area)


@compiled
def prefers_prefiller(
    costs: Costs, decoder: Record, prefiller: Record, held: int, tokens: int, b: int, k: int, factor: float
) -> bool:
    """Whether AMPD sends an increment to the prefill tier: no ITL slack at home, TTFT slack left there.

    Slack is `factor` x standalone minus the estimate (ConServe, section 5; AMPD, arXiv 2602.14516). `tokens` is the
    predicted increment, `b` and `k` sequences and KV tokens decoding at home.
    """
    alone_ms = decode_run_ms(costs, decoder["profile"], decoder["host_ms"], 1, held, 1)
    if append_ms(costs, decoder, held, tokens, b, k) <= factor * alone_ms:
        return False
    there_ms = prefill_alone_s(costs, prefiller, tokens, held) * 1e3
    moved_ms = transfer_ms(costs, decoder, held) + transfer_ms(costs, prefiller, tokens)
    ttft_ms = prefiller["queued_work_s"] * 1e3 + there_ms + moved_ms
    home_ms = prefill_alone_s(costs, decoder, tokens, held) * 1e3
    return ttft_ms <= factor * home_ms
