"""Open conversations as they are reported, and the orders that concern them."""

import math
from typing import Any

import pytest

from control.engine.detail import detail
from control.engine.orders import Outcome, obey
from control.engine.orders_kv import retention_of
from control.engine.source import Source
from control.engine.view import snapshot
from control.model.fleet import load_fleet
from control.policy.codes import ACTIVE, ORACLE
from control.present.gantt import TURN
from control.workload.scenarios import scenario
from tests.support.live import Driven, check_live, started


def talking(policy: str = "conserve", until_s: float = 150.0) -> Driven:
    """Agent conversations on tiers under a policy."""
    engine = started(load_fleet("conserve-a40"), Source("agents", 0, scenario=scenario("agents")), policy, 0.5)
    engine.run(until_s)
    return engine


def ask(engine: Driven, kind: str, payload: Any, expected: Any = None) -> Outcome:
    """Give one command; the journal is drained as the engine does."""
    outcome = obey(engine.live, {"kind": kind, "payload": payload, "expected": expected})
    engine.note()
    return outcome


@pytest.fixture
def talks() -> Driven:
    return talking()


@pytest.mark.parametrize("policy", ["conserve", "session-affinity", "full-disagg", "least-loaded"])
def test_every_open_conversation_is_told_whatever_the_policy(policy: str) -> None:
    engine = talking(policy)
    shown = detail(engine.live, {})["conversations"]
    active = int((engine.live.world.workflows["state"] == ACTIVE).sum())
    assert shown["open"] == active == len(shown["rows"])
    assert shown["pinned"] == sum(row["pinned"] for row in shown["rows"])
    assert (shown["pinned"] > 0) == (policy in ("conserve", "session-affinity"))
    assert {row["state"] for row in shown["rows"]} >= {"idle", "decode"}


def test_a_conversation_is_idle_or_in_a_turn_and_its_turns_are_told(talks: Driven) -> None:
    for row in detail(talks.live, {})["conversations"]["rows"]:
        turns = [dict(zip(TURN, turn, strict=True)) for turn in row["turn_rows"]]
        assert (row["idle_s"] is None) == (row["state"] != "idle")
        assert 0 < row["kv_tokens"] <= 40_960
        done = [turn for turn in turns if turn["state"] == "completed"]
        assert len(done) == min(row["turns"], len(done))
        for turn in turns:  # nothing that is still to come is told
            assert (turn["finished_s"] or 0.0) + turn["tool_s"] <= row["elapsed_s"] + 0.02


def test_the_parts_of_a_cache_sum_to_its_capacity(talks: Driven) -> None:
    parts = ("running_tokens", "pinned_tokens", "cached_tokens", "free_tokens")
    shown = detail(talks.live, {})["kv"]
    for row in shown["rows"]:
        assert sum(row[part] for part in parts) == row["capacity_tokens"]
        assert min(row[part] for part in parts) >= 0
    assert [row["headroom"] is None for row in shown["rows"]] == [True, False, False, False]
    assert sum(row["pinned_tokens"] for row in shown["rows"]) > 0
    sizes = [row["kv_tokens"] for row in shown["holders"]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_report_stays_small_and_the_worst_come_first(talks: Driven) -> None:
    ask(talks, "load_scale", {"load_scale": 3.0})
    talks.run(600.0)
    shown = detail(talks.live, {})["conversations"]
    assert shown["open"] > len(shown["rows"]) == 120
    assert shown["held"] > 0
    assert shown["rows"][0]["state"] == "held"


def test_a_lost_decoder_is_told_with_the_turn_that_found_it_gone(talks: Driven) -> None:
    ask(talks, "kill", {"instance": "a40-1"})
    talks.run(260.0)
    shown = detail(talks.live, {})["conversations"]
    assert shown["breaks"] > 0
    told = [row for row in talks.workflows if any("broke" in call for call in row["timeline"])]
    assert any(call.get("broke") == "instance_lost" for row in told for call in row["timeline"])
    ended = {call["call"] for row in talks.workflows for call in row["timeline"]}
    assert not ended & set(talks.live.broken)


def test_retention_is_set_and_told(talks: Driven) -> None:
    old = retention_of(talks.live.world)
    assert old == {"need": "observed", "idle_ttl_s": None}
    outcome = ask(talks, "retention", {"retention": {"need": "oracle", "idle_ttl_s": 20}}, {"retention": old})
    assert outcome.applied, outcome.reason
    assert outcome.event is not None
    assert outcome.event["text"] == "retention observed need, no idle limit → oracle need, idle up to 20 s"
    assert int(talks.live.world.policy[0]["need"]) == ORACLE
    assert snapshot(talks.live, 0.0, {}, 0.0)["retention"] == {"need": "oracle", "idle_ttl_s": 20.0}
    talks.run(151.0)
    idle = [row["idle_s"] for row in detail(talks.live, {})["conversations"]["rows"] if row["pinned"] and row["idle_s"]]
    assert max(idle, default=0.0) <= 20.0
    check_live(talks.live.world)


def test_a_limit_that_is_lifted_drops_nothing_more(talks: Driven) -> None:
    ask(talks, "retention", {"retention": {"idle_ttl_s": 30.0}})
    ask(talks, "retention", {"retention": {"idle_ttl_s": None}})
    assert int(talks.live.world.expiries.size[0]) == 0
    assert math.isinf(float(talks.live.world.policy[0]["idle_ttl_s"]))
    talks.run(200.0)
    assert not (talks.live.world.pins["break_cause"] == 2).any()


@pytest.mark.parametrize(
    ("settings", "expected", "reason"),
    [
        ({"need": "guess"}, None, "need = 'guess': expected one of observed, oracle"),
        ({"idle_ttl_s": 0}, None, "idle_ttl_s = 0: expected a number of seconds > 0"),
        ({"idle_ttl_s": "60"}, None, "idle_ttl_s = '60'"),
        ({"idle_ttl_s": True}, None, "idle_ttl_s = True"),
        ({"sticky": 1}, None, "'sticky' is not known"),
        ([], None, "retention = []"),
        ({"idle_ttl_s": 5}, {"retention": {"need": "oracle", "idle_ttl_s": None}}, "as when the command was made"),
    ],
)
def test_a_retention_that_does_not_fit_is_refused(talks: Driven, settings: Any, expected: Any, reason: str) -> None:
    outcome = ask(talks, "retention", {"retention": settings}, expected)
    assert not outcome.applied
    assert reason in outcome.reason
    assert retention_of(talks.live.world) == {"need": "observed", "idle_ttl_s": None}


def test_a_workflow_is_given_up_once(talks: Driven) -> None:
    listed = detail(talks.live, {})["conversations"]["rows"]
    number = next(row["workflow"] for row in listed if row["state"] == "idle")
    assert ask(talks, "cancel", {"workflow": number}).applied
    talks.run(151.0)
    (row,) = [row for row in talks.workflows if row["id"] == number]
    assert (row["state"], row["cause"]) == ("cancelled", "by_client")
    again = ask(talks, "cancel", {"workflow": number})
    assert again.reason == f"workflow = {number}: no workflow of that number is under way"
    check_live(talks.live.world)


@pytest.mark.parametrize("number", [-1, True, None, "3", 1.5, [0]])
def test_what_is_no_workflow_is_not_given_up(talks: Driven, number: Any) -> None:
    assert not ask(talks, "cancel", {"workflow": number}).applied


def test_totals_survive_a_restart(talks: Driven) -> None:
    before = detail(talks.live, {})
    talks.stop_and_go_on()
    after = detail(talks.live, {})
    assert after == before
