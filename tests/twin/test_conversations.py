"""The way of a conversation, by hand (ConServe, section 2). Every iteration takes 0.1 s, and moving KV 0.5 s."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from control.model.fleet import InstanceSpec
from control.policy.codes import (
    BY_CLIENT,
    CALL_STATES,
    CANCELLED,
    COMPACTED,
    COMPLETED,
    EVICTED,
    EXPIRED,
    HELD,
    INSTANCE_LOST,
    TRANSFER,
    policy_codes,
)
from control.policy.rules import Conversations
from control.twin.acts import cancel, change_policy, drain, kill
from control.twin.kernel import advance
from control.twin.pack import build_world
from control.twin.world import World
from tests.support.laws import check_world
from tests.support.worlds import CallSpec, Flow, fleet, instance, with_constant_steps, workload

STEP_S, LINK_S = 0.1, 0.5
PREFILLER, DECODER = instance(role="prefill", max_num_batched_tokens=1024), instance(max_num_batched_tokens=1024)
TIERS = (PREFILLER, DECODER, DECODER)


def turns(*lengths: tuple[int, int], stream: int = 0, tool_s: float = 0.0, draw_b: float = 0.0) -> list[CallSpec]:
    """A conversation of turns of (input, output) tokens; each but the first sends what the turn before it held."""
    calls, held = [], 0
    for group, (inputs, outputs) in enumerate(lengths):
        spec = CallSpec(inputs, outputs, group, stream=stream, history_tokens=min(held, inputs), tool_s=tool_s)
        calls.append(CallSpec(**{**vars(spec), "draw_b": draw_b}))
        held = inputs + outputs
    return calls


def build(*flows: Flow, policy: str = "conserve", on: Sequence[InstanceSpec] = TIERS, **settings: object) -> World:
    """A world of these workflows."""
    rules = Conversations(**settings)  # type: ignore[arg-type]
    world = build_world(workload(flows), fleet(*on), policy, conversations=rules)
    world = with_constant_steps(world, STEP_S)
    world.costs.profiles["link_ms"] = LINK_S * 1e3
    return world


def ended(world: World) -> World:
    """The world at its end: every law holds, nothing is set aside."""
    advance(world, math.inf)
    check_world(world, ended=True)
    assert world.instances["reserved"].tolist() == [0] * len(world.instances)
    return world


def until(world: World, c: int, state: int) -> World:
    """Let the world run until call `c` is in `state`, looking every twentieth of a second."""
    while world.calls[c]["state"] != state:
        assert world.clock[0]["now_s"] < 1e3
        advance(world, float(world.clock[0]["now_s"]) + 0.05)
    check_world(world)
    return world


FIVE = ((200, 8), (220, 6), (250, 8), (280, 4), (300, 8))


def test_kv_moves_once_in_five_turns_and_every_later_turn_is_cached() -> None:
    world = ended(build(Flow(0.0, turns(*FIVE))))
    calls, pin = world.calls, world.pins[0]
    assert calls["instance"].tolist() == [1] * 5
    assert (pin["sent"], pin["turns"], pin["breaks"], pin["recomputed"]) == (1, 5, 0, 0)
    assert world.instances["sent_tokens"].tolist() == [200, 0, 0]
    assert calls["transfer_s"] == pytest.approx([LINK_S, 0.0, 0.0, 0.0, 0.0])
    held = [0, 207, 225, 257, 283]  # the last token generated is in no cache
    assert (calls["cached_tokens"][1:] == [tokens // 16 * 16 for tokens in held[1:]]).all()
    assert pin["input_tokens"] == sum(inputs for inputs, _ in FIVE)


def test_first_token_comes_from_the_prefiller_and_the_second_from_the_decoder() -> None:
    """Prefill 0.1 s, 0.5 s on the way, then an iteration for each of 7 tokens."""
    world = ended(build(Flow(0.0, turns((200, 8)))))
    call = world.calls[0]
    assert call["first_token_s"] == pytest.approx(STEP_S)
    assert call["finished_s"] == pytest.approx(STEP_S + LINK_S + 7 * STEP_S)
    assert (call["prefill_s"], call["transfer_s"], call["decode_s"]) == pytest.approx((STEP_S, LINK_S, 7 * STEP_S))


def test_conversation_goes_to_the_decoder_with_most_unreserved_kv() -> None:
    flows = [Flow(float(k), turns((tokens, 300), stream=k)) for k, tokens in enumerate((400, 200, 100))]
    world = build(*flows)
    advance(world, 5.0)
    assert world.calls["instance"].tolist() == [1, 2, 2]


def test_held_conversation_is_let_in_when_another_ends() -> None:
    one, two = turns((600, 20)), turns((500, 4), stream=1)
    world = until(build(Flow(0.0, one), Flow(0.05, two), on=TIERS[:2]), 1, HELD)
    assert world.clock[0]["n_held"] == 1
    ended(world)
    calls = world.calls
    assert calls["hold_s"][1] > 0.0
    assert calls["finished_s"][0] == pytest.approx(calls["ready_s"][1] + 0.15 + calls["hold_s"][1])
    assert calls["hold_s"][1] == pytest.approx(calls["queue_other_s"][1])


def test_held_conversations_are_let_in_in_order() -> None:
    flows = [Flow(0.01 * k, turns((tokens, 20), stream=k)) for k, tokens in enumerate((600, 700, 500))]
    world = until(build(*flows, policy="collocated", on=(DECODER,)), 2, HELD)
    assert [CALL_STATES[state] for state in world.calls["state"][:2]] == ["prefill", "held"]
    started_s = ended(world).calls["started_s"]
    assert started_s[0] < started_s[1] < started_s[2]


def test_conversation_that_has_a_pin_is_never_held() -> None:
    """Both outgrow the instance between them; neither waits for KV while it keeps some."""
    flows = [Flow(0.01 * k, turns((400, 4), (700, 30), stream=k, tool_s=2.0)) for k in range(2)]
    world = build(*flows, on=TIERS[:2])
    advance(world, 3.5)
    assert world.instances["reserved"][1] > world.instances["blocks"][1]
    ended(world)
    assert (world.calls["hold_s"] == 0.0).all()
    assert (world.calls["instance"] == 1).all()


def test_idle_context_is_dropped_and_the_next_turn_is_charged() -> None:
    world = build(Flow(0.0, turns((200, 8), (240, 8), tool_s=5.0)), idle_ttl_s=1.0)
    advance(world, 4.0)
    assert (world.pins[0]["instance"], world.instances[1]["reserved"], world.instances[1]["evictable"]) == (-1, 0, 0)
    ended(world)
    pin = world.pins[0]
    assert (pin["breaks"], pin["break_cause"], pin["sent"]) == (1, EXPIRED, 2)
    assert world.calls["cached_tokens"].tolist() == [192, 240 // 16 * 16]  # found where it was sent, nowhere else
    assert pin["recomputed"] == (208 - 1) // 16 * 16
    assert world.instances["prefill_tokens"][0] == 200 + 240


def test_turn_within_the_retention_limit_finds_its_context() -> None:
    world = ended(build(Flow(0.0, turns((200, 8), (240, 8), tool_s=5.0)), idle_ttl_s=6.0))
    assert (world.pins[0]["breaks"], world.pins[0]["sent"]) == (0, 1)


def test_compacted_turn_breaks_the_prefix_and_counts() -> None:
    """The third turn shrinks to 100 tokens, of which 40 are as before."""
    calls = turns((200, 8), (220, 8), (100, 8))
    calls[2] = CallSpec(**{**vars(calls[2]), "history_tokens": 40})
    world = ended(build(Flow(0.0, calls)))
    pin = world.pins[0]
    assert (pin["breaks"], pin["break_cause"], pin["sent"]) == (1, COMPACTED, 1)
    assert world.calls["instance"].tolist() == [1, 1, 1]
    assert world.calls["cached_tokens"][2] == 32


def test_set_aside_follows_a_context_that_shrinks() -> None:
    calls = turns((200, 8), (100, 50), tool_s=1.0)
    world = build(Flow(0.0, calls))
    advance(world, 2.0)
    assert world.instances["reserved"][1] == math.ceil(208 / 16)
    until(world, 1, 3)
    assert world.instances["reserved"][1] == math.ceil(100 / 16)


def test_idle_pinned_context_that_others_evict_is_charged_at_the_next_turn() -> None:
    """The second conversation outgrows what was set aside for it, and the first one's idle context with it."""
    one, two = turns((400, 8), (440, 8), tool_s=60.0), turns((500, 400), stream=1)
    world = build(Flow(0.0, one), Flow(1.0, two), on=TIERS[:2])
    advance(world, 50.0)
    assert world.instances["evicted_blocks"][1] > 0
    ended(world)
    pin, evicted = world.pins[0], int(world.instances["evicted_blocks"][1])
    assert (pin["breaks"], pin["break_cause"], pin["sent"]) == (1, EVICTED, 1)
    assert 0 < pin["recomputed"] <= 16 * evicted
    assert world.calls["cached_tokens"][1] == (408 - 1) // 16 * 16 - pin["recomputed"]


@pytest.mark.parametrize("loses", [kill, drain], ids=["killed", "drained"])
def test_decoder_that_is_lost_has_the_next_turn_placed_anew(loses: Callable[[World, int], None]) -> None:
    world = build(Flow(0.0, turns((200, 8), (240, 8), tool_s=5.0)))
    advance(world, 3.0)
    loses(world, 1)
    advance(world, 4.0)
    assert world.pins[0]["instance"] == (-1 if loses is kill else 1)
    ended(world)
    pin = world.pins[0]
    assert world.calls["instance"].tolist() == [1, 2]
    assert (pin["breaks"], pin["break_cause"], pin["sent"]) == (1, INSTANCE_LOST, 2)
    assert pin["recomputed"] == (208 - 1) // 16 * 16


def test_turn_under_way_stays_on_a_draining_decoder() -> None:
    world = build(Flow(0.0, turns((200, 80), (300, 8))))
    advance(world, 2.0)
    drain(world, 1)
    ended(world)
    assert world.calls["instance"].tolist() == [1, 2]
    assert world.calls["restarts"].tolist() == [0, 0]


def other(c: int) -> CallSpec:
    """A call of a workflow of its own, in the way of others."""
    return CallSpec(600, 100, stream=c)


@pytest.mark.parametrize(
    ("state", "flows"),
    [
        ("waiting", [Flow(0.0, [other(1)]), Flow(0.02, turns((300, 30)))]),
        ("prefill", [Flow(0.0, turns((300, 30)))]),
        ("transfer", [Flow(0.0, turns((300, 30)))]),
        ("decode", [Flow(0.0, turns((300, 30)))]),
        ("held", [Flow(0.0, [other(1)]), Flow(0.02, turns((500, 30)))]),
        ("tool", [Flow(0.0, turns((300, 3), (310, 3), tool_s=9.0))]),
    ],
)
def test_cancelled_conversation_frees_all_its_kv(state: str, flows: list[Flow]) -> None:
    world, w = build(*flows, on=TIERS[:2]), len(flows) - 1
    c = int(world.workflows[w]["first_call"])
    until(world, c, COMPLETED if state == "tool" else CALL_STATES.index(state))
    assert cancel(world, w)
    advance(world, float(world.clock[0]["now_s"]) + 2 * STEP_S)
    check_world(world)
    last = world.calls[world.workflows[w]["next_call"] - 1]
    assert world.workflows[w]["cause"] == BY_CLIENT
    assert state == "tool" or (last["state"], last["cause"]) == (CANCELLED, BY_CLIENT)
    assert (world.pins[0]["instance"], world.pins[0]["reserved"], last["reserved"]) == (-1, 0, 0)
    assert not (world.slots[1, world.clock[0]["n_shared"]] >= 0).any()  # nothing of it is cached on the decoder
    ended(world)
    assert (world.instances["free"] + world.instances["evictable"] == world.instances["blocks"]).all()


def test_cancelled_conversation_lets_a_held_one_in() -> None:
    world = until(build(Flow(0.0, [other(1)]), Flow(0.02, turns((500, 30))), on=TIERS[:2]), 1, HELD)
    cancel(world, 0)
    advance(world, float(world.clock[0]["now_s"]) + 2 * STEP_S)
    assert world.calls[1]["state"] == TRANSFER
    ended(world)


def test_oracle_need_sets_the_peak_aside_from_the_start() -> None:
    calls = turns((200, 8), (300, 50), tool_s=1.0)
    seen, known = (until(build(Flow(0.0, calls), need=need), 0, COMPLETED) for need in ("observed", "oracle"))
    assert seen.instances["reserved"].tolist() == [0, math.ceil(208 / 16), 0]
    assert known.instances["reserved"].tolist() == [0, math.ceil(350 / 16), 0]
    for world in (seen, known):
        ended(world)


def test_ampd_that_always_errs_sends_every_later_turn_back() -> None:
    """The prefiller fetches the history, the increment comes home: three moves in two turns."""
    world = ended(build(Flow(0.0, turns((200, 8), (240, 8))), policy="ampd", error=1.0, on=TIERS[:2]))
    calls, pin = world.calls, world.pins[0]
    history = 207 // 16 * 16
    assert (pin["sent"], pin["breaks"], pin["turns"]) == (3, 0, 2)
    assert world.instances["sent_tokens"].tolist() == [200 + 240 - history, history]
    assert calls["transfer_s"] == pytest.approx([LINK_S, LINK_S])
    assert calls["prefill_s"] == pytest.approx([STEP_S, LINK_S + STEP_S])  # nothing else runs there meanwhile
    assert world.instances["prefill_tokens"][0] == 200 + 240 - history
    assert calls["instance"].tolist() == [1, 1]


def test_ampd_without_error_is_conserve() -> None:
    worlds = [ended(build(Flow(0.0, turns(*FIVE)), policy=policy, error=0.0)) for policy in ("ampd", "conserve")]
    assert (worlds[0].calls == worlds[1].calls).all()


def test_full_disaggregation_prefills_the_whole_history_at_every_turn() -> None:
    world = ended(build(Flow(0.0, turns((200, 8), (240, 8), (300, 8))), policy="full-disagg"))
    assert world.instances["prefill_tokens"][0] == 200 + 240 + 300
    assert world.instances["sent_tokens"][0] == 200 + 240 + 300


def held_up() -> World:
    """Two prompts at a prefiller with one seat that is held up for 1 s by each transfer."""
    one = instance(role="prefill", max_num_seqs=1, max_num_batched_tokens=1024)
    world = build(*(Flow(0.0, turns((200, 8), stream=k)) for k in range(2)), on=(one, DECODER))
    world.costs.profiles["send_ms"] = 1000.0
    return world


def test_prefiller_that_sends_begins_its_next_iteration_later_and_draws_idle_power_meanwhile() -> None:
    world = held_up()
    advance(world, STEP_S + 1.0 + STEP_S + 0.01)
    assert world.calls["first_token_s"] == pytest.approx([STEP_S, STEP_S + 1.0 + STEP_S])
    sender, idle_w = world.instances[0], world.costs.profiles["idle_w"][world.instances[0]["profile"]]
    assert sender["busy_s"] == pytest.approx(2 * STEP_S)
    assert sender["idle_j"] == pytest.approx(1.0 * idle_w)
    assert world.calls["energy_j"].sum() == pytest.approx(
        (world.instances["energy_j"] - world.instances["idle_j"]).sum()
    )
    ended(world)


def test_prefiller_killed_while_it_sends_has_computed_nothing_more() -> None:
    world = held_up()
    advance(world, 0.6)
    kill(world, 0)
    sender = world.instances[0]
    assert sender["busy_s"] == pytest.approx(STEP_S)
    ended(world)
    assert (world.calls["state"] == COMPLETED).all()
    assert np.isclose(world.calls["failure_s"][1], 0.6)


def test_held_call_of_a_workflow_that_came_to_hold_kv_is_let_in() -> None:
    """One of two parallel calls fits and pins while the other is held: it may not wait behind another workflow's."""
    first, large = Flow(0.0, turns((600, 60), stream=0)), Flow(1.0, turns((1000, 5), stream=1))
    pair = Flow(2.0, [CallSpec(700, 5, stream=2), CallSpec(100, 5, stream=3)])
    world = ended(build(first, large, pair, policy="collocated", on=(DECODER,)))
    assert (world.calls["state"] == COMPLETED).all()


def test_nobody_passes_a_held_conversation() -> None:
    first, large = Flow(0.0, turns((200, 100), stream=0)), Flow(0.5, turns((1000, 5), stream=1))
    small = [Flow(1.0 + 5.0 * k, turns((200, 100), stream=2 + k)) for k in range(6)]
    world = ended(build(first, large, *small, on=(PREFILLER, DECODER)))
    assert world.calls["finished_s"][1] < world.calls["finished_s"][2]


def test_change_of_policy_during_a_prefill_keeps_the_context_limit() -> None:
    short = instance(role="prefill", max_num_batched_tokens=16, max_model_len=100)
    world = build(Flow(0.0, [CallSpec(60, 500)]), on=(short, DECODER))
    advance(world, 0.25)
    change_policy(world, *policy_codes("rr-fcfs"))
    assert ended(world).calls["emitted"].tolist() == [40]
