"""Power caps on a live fleet: bounds, what they change and what not, how they are taken back and survive a restart."""

from typing import Any

import numpy as np
import pytest

from control.engine import checkpoint, view
from control.engine.detail import detail
from control.engine.orders import Outcome, obey
from control.engine.source import Source
from control.engine.state import take_in
from control.model.fleet import load_fleet
from control.policy.codes import DECODING, IDLE
from control.present.wording import inverse
from control.twin.caps import caps_of
from control.twin.world import fork
from control.workload.scenarios import scenario
from tests.support.live import Driven, check_live, started

A40 = ("a40-0", "a40-1", "a40-2", "a40-3")


@pytest.fixture
def talks() -> Driven:
    """Agent conversations on tiers, two minutes in."""
    engine = started(load_fleet("conserve-a40"), Source("agents", 0, scenario=scenario("agents")), "conserve", 0.5)
    engine.run(120.0)
    return engine


def cap(engine: Driven, tier: str, cap_w: Any, expected: Any = None) -> Outcome:
    """Ask for a cap, as the engine is asked."""
    command = {"kind": "power_cap", "payload": {"tier": tier, "cap_w": cap_w}, "expected": expected}
    outcome = obey(engine.live, command)
    engine.note()
    return outcome


@pytest.mark.parametrize(
    ("tier", "capped"),
    [("all", A40), ("prefill", A40[:1]), ("decode", A40[1:]), ("a40-2", A40[2:3])],
)
def test_a_tier_an_instance_or_all_are_capped(talks: Driven, tier: str, capped: tuple[str, ...]) -> None:
    outcome = cap(talks, tier, 200.0)
    assert outcome.applied, outcome.reason
    assert outcome.event is not None
    assert outcome.event["text"] == f"power cap of {tier} no cap → 200 W per GPU"
    assert outcome.event["old"] == {"caps": dict.fromkeys(capped)}
    wanted = [200.0 if name in capped else None for name in A40]
    assert caps_of(talks.live.fleet) == wanted
    talks.run(180.0)
    check_live(talks.live.world)


@pytest.mark.parametrize(
    ("tier", "cap_w", "reason"),
    [
        ("all", 104.9, "cap_w = 104.9: a40-0 (A40) takes a number from 105 to 300 W per GPU, or null for no cap"),
        ("decode", 301, "takes a number from 105 to 300 W per GPU"),
        ("decode", True, "cap_w = True"),
        ("decode", "200", "cap_w = '200'"),
        ("decode", float("nan"), "cap_w = nan"),
        ("mixed", 200.0, "tier = 'mixed': expected one of all, prefill, decode or an instance's name"),
        ("b200-0", 200.0, "tier = 'b200-0'"),
        ("decode", None, "decode: the cap is no cap already"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(talks: Driven, tier: str, cap_w: Any, reason: str) -> None:
    costs = talks.live.world.costs
    outcome = cap(talks, tier, cap_w)
    assert not outcome.applied
    assert reason in outcome.reason
    assert talks.live.world.costs is costs


def test_a_cap_that_someone_else_changed_meanwhile_is_refused(talks: Driven) -> None:
    assert cap(talks, "decode", 250.0, "no cap").applied
    assert "it is 250.0 now, not no cap" in cap(talks, "decode", 200.0, "no cap").reason
    assert "it is mixed now" in cap(talks, "all", 200.0, 250.0).reason
    assert cap(talks, "decode", 200.0, 250.0).applied


def test_a_run_under_way_ends_with_the_cost_it_began_with(talks: Driven) -> None:
    world = talks.live.world
    busy = [i for i in range(len(A40)) if world.instances[i]["run"] == DECODING]
    idle = [i for i in range(len(A40)) if world.instances[i]["run"] == IDLE]
    before = {
        i: (float(world.instances[i]["run_w"]), world.costs.profiles[world.instances[i]["profile"]]) for i in busy
    }
    assert busy
    cap(talks, "all", 150.0)
    world = talks.live.world
    ends = {switch.instance: switch.at_s for switch in talks.live.switches}
    assert set(busy) <= set(ends)
    assert not set(idle) & set(ends)
    for i, (watts, profile) in before.items():
        assert float(world.runs.time[i]) == ends[i] <= talks.live.now_s + 0.5
        assert float(world.instances[i]["run_w"]) == watts
        assert world.costs.profiles[world.instances[i]["profile"]] == profile
    talks.run(max(ends.values()) + 0.001)
    assert talks.live.switches == []
    rows = talks.live.world.costs.profiles[talks.live.world.instances["profile"]]
    assert (rows["prefill_w"] <= 150.0).all()


def test_a_capped_fleet_goes_on_as_one_that_was_built_with_the_cap(talks: Driven) -> None:
    cap(talks, "all", 180.0)
    talks.run(121.0)
    live = talks.live
    arrays, _ = checkpoint.opened(checkpoint.save(live))
    fresh = checkpoint.load_world(arrays, live.fleet, [])
    assert np.array_equal(
        fresh.costs.power_w[fresh.instances["profile"]], live.world.costs.power_w[live.world.instances["profile"]]
    )
    assert fresh.steps["mean_exec_s"] == pytest.approx(live.world.steps["mean_exec_s"])


def test_watts_fall_and_joules_still_sum(talks: Driven) -> None:
    cap(talks, "all", 120.0)
    talks.run(240.0)
    payload = view.snapshot(talks.live, 0.0, {}, 0.0)
    assert all(row["power_w"] <= 120.0 for row in payload["instances"])
    assert payload["fleet"]["power_limit_w"] == 480.0
    shown = detail(talks.live, {})["power"]
    drawn = sum(row[name] for row in shown["rows"] for name in ("prefill_j", "decode_j", "idle_j"))
    assert drawn == pytest.approx(view.read_views(talks.live)["energy_j"].sum(), rel=1e-6)


def test_a_cap_moves_no_deadline(talks: Driven) -> None:
    capped = started(talks.live.given, talks.live.source, "conserve", 0.5)
    cap(capped, "all", 105.0)
    free = started(talks.live.given, talks.live.source, "conserve", 0.5)
    for engine in (capped, free):
        take_in(engine.live, engine.live.source.window(1, 1.0))
    assert np.array_equal(capped.live.world.workflows["slo_s"], free.live.world.workflows["slo_s"])
    rows = capped.live.world.costs.profiles[capped.live.world.instances["profile"]]
    assert (rows["prefill_w"] <= 105.0).all()


def test_caps_are_taken_back_each_to_what_it_was(talks: Driven) -> None:
    cap(talks, "a40-1", 250.0)
    payload = {"tier": "decode", "cap_w": 200.0}
    outcome = cap(talks, "decode", 200.0)
    assert outcome.event is not None
    row = {"kind": "power_cap", "payload": payload, "state": "applied", "expected": None}
    undo = inverse(row, outcome.event["old"])
    assert undo is not None
    back = obey(talks.live, {"kind": undo.kind, "payload": undo.payload, "expected": undo.expected})
    assert back.applied, back.reason
    assert caps_of(talks.live.fleet) == [None, 250.0, None, None]


@pytest.mark.parametrize("payload", [{"caps": {}}, {"caps": {"x": 200.0}}, {"caps": {"a40-0": 20.0}}, {"caps": 3}, {}])
def test_caps_by_instance_that_do_not_fit_are_refused(talks: Driven, payload: dict[str, Any]) -> None:
    assert not obey(talks.live, {"kind": "power_caps", "payload": payload}).applied
    assert caps_of(talks.live.fleet) == [None] * 4


@pytest.mark.parametrize("at_once", [True, False])
def test_a_restart_keeps_the_caps(talks: Driven, at_once: bool) -> None:
    cap(talks, "decode", 200.0)
    if not at_once:
        talks.run(125.0)
    twin = Driven(checkpoint.load(checkpoint.save(talks.live), talks.live.given, talks.live.source))
    assert twin.live.fleet == talks.live.fleet
    assert twin.live.switches == talks.live.switches
    for engine in (talks, twin):
        engine.run(180.0)
    assert fork(twin.live.world).calls.tobytes() == talks.live.world.calls.tobytes()
    assert twin.live.world.instances.tobytes() == talks.live.world.instances.tobytes()


def test_caps_by_instance_take_names_of_instances_alone(talks: Driven) -> None:
    """A tier among them would cap one of its instances and look applied."""
    before = caps_of(talks.live.fleet)
    for caps in ({"all": 200.0}, {"decode": 200.0}, {"nobody": 200.0}):
        outcome = obey(talks.live, {"kind": "power_caps", "payload": {"caps": caps}, "expected": None})
        assert not outcome.applied
        assert "is no instance: expected some of a40-0" in outcome.reason
    assert caps_of(talks.live.fleet) == before
