"""A receipt tells what a placement was decided on: every instance with both terms of its score, or why it was none."""

import math

import numpy as np
import pytest
from hypothesis import given

from control.policy.codes import (
    CANDIDATE,
    CONTEXT_TOO_LONG,
    DOWN,
    DRAINING,
    FAILED_BEFORE,
    FILTERS,
    IS_DOWN,
    IS_DRAINING,
    NO_ROOM,
    NOT_COMPARED,
    NOT_PINNED,
    PASSED_OVER,
    PLACED,
    SEND_AGAIN,
    UP,
    WRONG_ROLE,
)
from control.policy.cost import exec_s
from control.policy.tables import Table
from control.twin.acts import NOTHING, act
from control.twin.kernel import advance
from control.twin.pack import RECEIPTS, build_world
from control.twin.world import World, fork, silent
from tests.support.parity import unlike_tables
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, Flow, fleet, instance, lone_calls, workload

CONVERSATIONS = ("collocated", "full-disagg", "conserve", "ampd")


def receipt_of(world: World, c: int) -> Table:
    """The receipt of the latest placement of call `c`, a row an instance."""
    return world.receipts[world.calls[c]["receipt"] % len(world.receipts)]


def at_the_second(policy: str, alpha: float = 0.3, states: tuple[int, ...] = (UP, UP, UP), long: bool = False) -> World:
    """Three unlike instances, a first call placed at 1 s, and a second one about to arrive at 1.25 s."""
    kinds = (instance("H100", max_model_len=200), instance("A100"), instance("L4"))
    work = lone_calls([1.0, 1.25], [CallSpec(100, 50), CallSpec(400 if long else 80, 30, draw_a=0.1, draw_b=0.9)])
    world = build_world(work, fleet(*kinds), policy, alpha, journal=True)
    world.instances["state"] = states
    advance(world, 1.2)
    return world


def test_a_receipt_of_hexgen_is_the_papers_score_of_the_tables_just_before() -> None:
    world = at_the_second("hexgen")
    before = fork(world)
    advance(world, 1.25)
    rows, outputs = receipt_of(world, 1), before.steps[0]["mean_output"]
    t_comp_s = np.array([exec_s(before.costs, before.instances[i], 80, 0, outputs) for i in range(3)])
    t_queue_s = before.instances["queued_work_s"]
    assert (t_queue_s > 0.0).any()
    floored = np.maximum(t_queue_s, before.policy[0]["floor"] * t_comp_s)
    scores = 0.7 * (t_comp_s.mean() * floored.mean()) / floored - 0.3 * t_comp_s
    assert rows["t_comp_s"] == pytest.approx(t_comp_s, rel=1e-12)
    assert rows["t_queue_s"].tolist() == t_queue_s.tolist()
    assert rows["score"] == pytest.approx(scores, rel=1e-12)
    assert rows["why"].tolist() == [CANDIDATE] * 3
    assert world.calls[1]["instance"] == scores.argmax()


@pytest.mark.parametrize(("state", "why"), [(DOWN, IS_DOWN), (DRAINING, IS_DRAINING), (PASSED_OVER, FAILED_BEFORE)])
def test_an_instance_out_of_service_is_told_apart(state: int, why: int) -> None:
    world = at_the_second("hexgen", states=(UP, state, UP))
    advance(world, 1.25)
    assert receipt_of(world, 1)["why"].tolist() == [CANDIDATE, why, CANDIDATE]
    assert receipt_of(world, 1)["score"][1] == -math.inf


def test_a_context_that_is_too_long_is_told() -> None:
    world = at_the_second("rr-fcfs", long=True)
    advance(world, 1.25)
    assert receipt_of(world, 1)["why"].tolist() == [CONTEXT_TOO_LONG, CANDIDATE, CANDIDATE]


def test_two_choices_look_at_two() -> None:
    world = at_the_second("p2c")
    advance(world, 1.25)
    assert sorted(receipt_of(world, 1)["why"].tolist()) == [CANDIDATE, CANDIDATE, NOT_COMPARED]


def talk(tokens: int = 200, stream: int = 0) -> list[CallSpec]:
    """A conversation of two turns."""
    first = CallSpec(tokens, 8, 0, stream=stream)
    return [first, CallSpec(tokens + 40, 8, 1, stream=stream, history_tokens=tokens + 8)]


TIERS = (instance(role="prefill"), instance(role="prefill"), instance(), instance(kv_tokens=512))


def test_a_conversation_is_compared_by_tier_then_by_room_then_it_is_pinned() -> None:
    world = build_world(workload([Flow(0.0, talk())]), fleet(*TIERS), "conserve", journal=True)
    advance(world, 0.0)
    first = receipt_of(world, 0)
    assert first["why"].tolist() == [CANDIDATE, CANDIDATE, WRONG_ROLE, WRONG_ROLE]
    assert np.isnan(first["t_comp_s"]).all()
    while world.calls[0]["receipt"] == 0:
        advance(world, float(world.clock[0]["now_s"]) + 0.01)
    sent = receipt_of(world, 0)
    assert sent["why"].tolist() == [WRONG_ROLE, WRONG_ROLE, CANDIDATE, CANDIDATE]
    assert sent["score"][2:].tolist() == [64.0, 32.0]  # free KV blocks
    advance(world, math.inf)
    assert receipt_of(world, 1)["why"].tolist() == [NOT_PINNED, NOT_PINNED, CANDIDATE, NOT_PINNED]


def test_a_decoder_without_room_is_told_apart_from_one_of_the_other_tier() -> None:
    crowd = [Flow(0.0, [CallSpec(400, 300, stream=k)]) for k in range(3)]
    world = build_world(workload(crowd), fleet(*TIERS), "conserve", journal=True)
    advance(world, math.inf)
    sent = [receipt_of(world, c)["why"].tolist() for c in range(3)]
    assert sorted(sent) == [
        [WRONG_ROLE, WRONG_ROLE, CANDIDATE, CANDIDATE],
        [WRONG_ROLE, WRONG_ROLE, CANDIDATE, CANDIDATE],
        [WRONG_ROLE, WRONG_ROLE, NO_ROOM, CANDIDATE],
    ]


def test_a_call_that_failed_somewhere_is_not_sent_there_again() -> None:
    spec = instance(url="http://a")
    world = build_world(lone_calls([0.0], [CallSpec(10, 5)]), fleet(spec, spec, spec), "least-loaded", journal=True)
    world.instances["remote"] = 1
    advance(world, 0.0)
    i = int(world.calls[0]["instance"])
    tried = NOTHING.copy()
    tried[0] = i
    act(world, SEND_AGAIN, 0, 0, tried)
    assert FILTERS[receipt_of(world, 0)["why"][i]] == "failed_before"
    assert world.calls[0]["instance"] != i


@examples(40)
@given(scene=scenes())
def test_every_placement_has_the_receipt_that_led_to_it(scene: Scene) -> None:
    world, unheard = scene.world(journal=True), silent(scene.world(journal=True))
    placed = []
    while not advance(world, math.inf):
        placed.append(world.journal[: world.clock[0]["n_journal"]].copy())
        world.clock["n_journal"] = 0
    placed.append(world.journal[: world.clock[0]["n_journal"]].copy())
    advance(unheard, math.inf)
    world.clock["n_journal"] = 0
    assert unlike_tables(world, unheard) == []
    newest = int(world.clock[0]["n_receipts"])
    for entry in np.concatenate(placed):
        if entry["kind"] != PLACED:
            continue
        assert 0 <= entry["receipt"] < newest
        if entry["receipt"] >= newest - RECEIPTS:
            row = world.receipts[entry["receipt"] % RECEIPTS]
            assert row["why"][entry["instance"]] == CANDIDATE
            assert row["score"][entry["instance"]] == row["score"].max()
            assert ((row["why"] == CANDIDATE) == (row["score"] > -math.inf)).all()
            assert (row["why"] < len(FILTERS)).all()


def test_a_world_nobody_listens_to_keeps_none() -> None:
    world = at_the_second("hexgen")
    quiet = build_world(lone_calls([0.0], [CallSpec(10)]), fleet(instance()), "hexgen")
    advance(quiet, math.inf)
    assert (len(quiet.receipts), quiet.clock[0]["n_receipts"], quiet.calls[0]["receipt"]) == (0, 1, 0)
    assert len(world.receipts) == RECEIPTS


@pytest.mark.parametrize("policy", ["hexgen", "rr-fcfs", "least-loaded"])
def test_a_call_that_is_wanted_elsewhere_goes_there_and_no_other_does(policy: str) -> None:
    world = at_the_second(policy)
    other = fork(world)
    advance(world, 1.25)
    second = int(world.calls[1]["runner_up"])
    other.calls[1]["wanted"] = second
    advance(other, 1.25)
    assert (other.calls[1]["instance"], other.calls[0]["instance"]) == (second, world.calls[0]["instance"])
    assert other.calls[1]["runner_up"] == world.calls[1]["instance"]


def test_a_wish_that_cannot_be_met_is_passed_over() -> None:
    world = at_the_second("hexgen", states=(UP, DOWN, UP))
    world.calls[1]["wanted"] = 1
    advance(world, 1.25)
    assert world.calls[1]["instance"] != 1
