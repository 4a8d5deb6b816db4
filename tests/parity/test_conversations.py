"""The compiled twin against the slow one on conversations over two tiers, whose contexts grow, and now and then shrink.

Calls of random lengths seldom find the context of the turn before. These do, so KV moves, is fetched and evicted.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.model.fleet import InstanceSpec
from control.policy.codes import CONVERSATION_POLICIES, NEEDS, ROUTERS
from control.policy.rules import Conversations
from tests.parity.test_disturbed import check_disturbed
from tests.support.failures import Order, orders
from tests.support.scenes import STEPS, TENANTS, Scene, examples
from tests.support.worlds import CallSpec, Flow, fleet, instance, workload

A40 = ("A40", "Qwen3-0.6B")  # its prefillers are held up by sending
GPUS = (("A100", "Llama-3.1-8B"), A40)


@st.composite
def tiered(draw: st.DrawFn, scale: int) -> list[InstanceSpec]:
    """One or two prefillers and up to three decoders, with room for a few conversations of this scale."""
    block, n = draw(st.sampled_from([1, 4, 16])), draw(st.integers(1, 2))
    specs = []
    for k in range(n + draw(st.integers(1, 3))):
        gpu, model = draw(st.sampled_from(GPUS))
        tokens, seqs = scale * draw(st.sampled_from([100, 200, 400])), draw(st.sampled_from([1, 4, 8]))
        limit, batched = draw(st.sampled_from([None, None, 90 * scale])), scale * draw(st.sampled_from([512, 64, 8]))
        role = "prefill" if k < n else draw(st.sampled_from(["decode", "mixed"]))
        spec = instance(gpu, model, block_size=block, kv_tokens=max(block, tokens // block * block), role=role)
        specs.append(vars(spec) | {"max_num_seqs": seqs, "max_num_batched_tokens": batched, "max_model_len": limit})
    return [InstanceSpec(**settings) for settings in specs]


def conversation(rng: np.random.Generator, number: int, span_s: float, scale: int) -> Flow:
    """Up to five turns: each sends what the one before held and some more, one in six shrinks it."""
    calls, held = [], 0
    for group in range(int(rng.integers(1, 6))):
        history = held if rng.random() > 1 / 6 else int(rng.integers(0, held + 1))
        call = CallSpec(
            input_tokens=history + scale * int(rng.integers(1, 30 if group else 60)),
            output_tokens=int(rng.choice([1, 2, 5, 12, 60])),
            group=group,
            step=int(rng.integers(0, len(STEPS))),
            tool_s=float(rng.choice([0.0, 0.05, 0.3])),
            stream=number,
            history_tokens=history,
            draw_a=rng.random(),
            draw_b=rng.random(),
        )
        calls.append(call)
        held = call.input_tokens + call.output_tokens
    return Flow(rng.random() * span_s, calls, tenant=int(rng.integers(0, len(TENANTS))))


@st.composite
def conversation_scenes(draw: st.DrawFn, policy: str) -> Scene:
    """A few conversations under `policy`."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    span_s, n, scale = draw(st.sampled_from([0.0, 0.5, 3.0])), draw(st.integers(1, 12)), draw(st.sampled_from([120, 1]))
    settings = Conversations(
        need=draw(st.sampled_from(NEEDS)),
        router=draw(st.sampled_from(ROUTERS[::-1])),
        error=draw(st.sampled_from([0.0, 0.3, 1.0])),
        idle_ttl_s=draw(st.sampled_from([math.inf, math.inf, 0.1])),
    )
    flows = [conversation(rng, k, span_s, scale) for k in range(n)]
    work = workload(flows, steps=STEPS, tenants=TENANTS)
    return Scene(work, fleet(*draw(tiered(scale))), policy, 0.5, 1.0, -1, conversations=settings)


@pytest.mark.parametrize("policy", CONVERSATION_POLICIES)
@examples(40)
@given(data=st.data(), exact=st.booleans(), happens=st.one_of(st.just([]), orders()))
def test_conversations_run_alike(policy: str, data: st.DataObject, exact: bool, happens: list[Order]) -> None:
    check_disturbed(data.draw(conversation_scenes(policy)), exact, happens)
