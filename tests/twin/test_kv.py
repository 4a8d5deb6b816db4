"""Prefix reuse, eviction, watermark and preemption, as cases in words. Blocks hold 16 tokens."""

from dataclasses import replace

import numpy as np
import pytest

from control.model.fleet import InstanceSpec
from control.twin.kernel import advance, settle_energy
from control.twin.pack import build_world
from control.twin.world import World
from tests.support.laws import check_world
from tests.support.worlds import CallSpec, Flow, fleet, instance, workload

PROMPT = CallSpec(64, 2, shared_key=0, shared_tokens=48)


def run(flows: list[Flow], spec: InstanceSpec | None = None, policy: str = "rr-fcfs") -> World:
    """The world of one instance after all flows, the laws checked."""
    world = build_world(workload(flows), fleet(spec or instance()), policy)
    advance(world, np.inf)
    settle_energy(world)
    check_world(world, ended=True)
    return world


def cached(world: World) -> list[int]:
    """Prompt tokens found in the cache, by call."""
    found: list[int] = world.calls["cached_tokens"].tolist()
    return found


def turn(stream: int, at_s: float, tokens: int = 40, history: int = 0) -> Flow:
    """One turn of a conversation as a workflow of its own."""
    return Flow(at_s, [CallSpec(tokens, 4, stream=stream, history_tokens=history)])


def test_shared_prompt_is_found_by_the_next_call() -> None:
    assert cached(run([Flow(0.0, [PROMPT]), Flow(5.0, [PROMPT])])) == [0, 48]


def test_shared_prompt_is_found_while_its_first_user_still_runs() -> None:
    assert cached(run([Flow(0.0, [replace(PROMPT, output_tokens=100)]), Flow(0.5, [PROMPT])])) == [0, 48]


def test_prompt_is_not_found_before_its_prefill_is_done() -> None:
    assert cached(run([Flow(0.0, [PROMPT]), Flow(0.001, [PROMPT])], instance(max_num_batched_tokens=128))) == [0, 48]
    assert cached(run([Flow(0.0, [PROMPT]), Flow(0.0, [PROMPT])], instance(max_num_batched_tokens=128))) == [0, 0]


def test_prompts_of_other_steps_are_not_found() -> None:
    assert cached(run([Flow(0.0, [PROMPT]), Flow(5.0, [replace(PROMPT, shared_key=1)])])) == [0, 0]


def test_nothing_is_found_with_caching_off() -> None:
    flows = [Flow(0.0, [PROMPT]), Flow(5.0, [PROMPT]), turn(0, 10.0), turn(0, 15.0, 60, 40)]
    assert cached(run(flows, instance(prefix_caching=False))) == [0, 0, 0, 0]


def test_conversation_finds_the_full_blocks_of_its_history() -> None:
    """40 tokens sent and 4 generated hold 43 tokens of KV: two full blocks."""
    assert cached(run([turn(0, 0.0), turn(0, 5.0, 60, 44)])) == [0, 32]


def test_conversation_that_was_compacted_finds_only_what_it_kept() -> None:
    assert cached(run([turn(0, 0.0), turn(0, 5.0, 60, 20)])) == [0, 16]


def test_other_conversations_find_nothing() -> None:
    assert cached(run([turn(0, 0.0), turn(1, 5.0, 60, 44)])) == [0, 0]


def test_conversation_behind_a_shared_prompt_finds_both() -> None:
    """48 shared tokens and 40 of its own: five of the five full blocks behind 84 tokens."""
    first = CallSpec(84, 2, shared_key=0, shared_tokens=48, stream=0)
    again = CallSpec(120, 2, shared_key=0, shared_tokens=48, stream=0, history_tokens=84)
    world = run([Flow(0.0, [first]), Flow(5.0, [again])])
    assert cached(world) == [0, 80]


def test_one_token_at_least_is_computed() -> None:
    spec = instance(block_size=1, kv_tokens=400)
    world = run([turn(0, 0.0, 40), turn(0, 5.0, 41, 40), turn(1, 8.0, 40), turn(1, 9.0, 40, 39)], spec)
    assert cached(world) == [0, 40, 0, 39]


def test_least_recently_used_conversation_is_evicted_first() -> None:
    """Ten blocks: the contexts of streams 0 and 1 take four; 120 tokens of stream 2 need eight, two of them theirs."""
    flows = [turn(0, 0.0), turn(1, 5.0), turn(0, 10.0, 41, 40), turn(2, 15.0, 120)]
    flows += [turn(0, 20.0, 42, 41), turn(1, 25.0, 41, 40)]
    assert cached(run(flows, instance(kv_tokens=160))) == [0, 0, 32, 0, 32, 0]


def test_eviction_takes_the_tail_so_the_rest_is_still_a_prefix() -> None:
    """Ten blocks, six of them cached for stream 0; 110 tokens need seven, so three are taken from the tail."""
    flows = [turn(0, 0.0, 96), turn(1, 5.0, 109), turn(0, 10.0, 97, 96)]
    assert cached(run(flows, instance(kv_tokens=160))) == [0, 0, 48]


def test_preempted_call_resumes_from_what_it_had_computed() -> None:
    """Two calls grow until eight blocks no longer hold both; the younger goes and comes back."""
    flows = [Flow(0.0, [CallSpec(48, 40)]), Flow(0.0, [CallSpec(48, 40)])]
    world = run(flows, instance(kv_tokens=128, max_num_batched_tokens=128))
    assert world.calls["preemptions"].tolist() == [0, 1]
    assert world.calls["finished_s"][0] < world.calls["finished_s"][1]
    assert (world.calls["emitted"] == 40).all()
    assert world.calls["cached_tokens"][1] > 0


def test_preempted_call_computes_everything_anew_with_caching_off() -> None:
    flows = [Flow(0.0, [CallSpec(48, 40)]), Flow(0.0, [CallSpec(48, 40)])]
    world = run(flows, instance(kv_tokens=128, max_num_batched_tokens=128, prefix_caching=False))
    emitted_before = world.instances["prefill_tokens"][0] - 96 - 48
    assert world.calls["preemptions"].tolist() == [0, 1]
    assert world.calls["cached_tokens"][1] == 0
    assert 0 < emitted_before < 40


@pytest.mark.parametrize(("watermark", "together"), [(0.0, True), (0.25, False)])
def test_watermark_keeps_blocks_for_growth(watermark: float, together: bool) -> None:
    """Eight blocks, the first call holds three; the second needs four, which leaves one: two must stay."""
    flows = [Flow(0.0, [CallSpec(34, 10)]), Flow(0.05, [CallSpec(60, 2)])]
    world = run(flows, instance(kv_tokens=128, watermark=watermark))
    assert (world.calls["started_s"][1] < world.calls["finished_s"][0]) == together


def test_lone_call_may_use_the_watermark() -> None:
    world = run([Flow(0.0, [CallSpec(112, 10)])], instance(kv_tokens=128, watermark=0.5))
    assert world.calls["finished_s"][0] > 0
    assert world.instances["kv_peak"][0] == 8


def test_large_shared_prompt_in_the_way_of_a_lone_call_is_given_up() -> None:
    """Eight blocks, six of them a cached prompt of which the call could use one: it takes all eight instead."""
    first = CallSpec(97, 2, shared_key=0, shared_tokens=96)
    lone = CallSpec(110, 10, shared_key=0, shared_tokens=16)
    world = run([Flow(0.0, [first]), Flow(5.0, [lone])], instance(kv_tokens=128))
    assert cached(world) == [0, 0]
