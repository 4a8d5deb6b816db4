"""A simulated instance made slower: from the end of what it is at, for as long as it is told, deadlines unmoved."""

from copy import deepcopy
from typing import Any

import pytest

from control.engine import checkpoint
from control.engine.orders import Outcome, obey
from control.engine.view import read_views, snapshot
from tests.support.live import Driven, check_live
from tests.support.parity import unlike_tables


def slow(engine: Driven, factor: Any, instance: str = "h100-0", expected: Any = None) -> Outcome:
    """Give the command; the journal is drained as the engine does."""
    payload = {"instance": instance, "factor": factor}
    outcome = obey(engine.live, {"kind": "slow", "payload": payload, "expected": expected})
    engine.note()
    return outcome


def generated(engine: Driven, i: int, seconds: float) -> int:
    """Tokens that instance `i` generates over the next stretch."""
    before = int(read_views(engine.live)[i]["generated"])
    engine.run(engine.live.now_s + seconds)
    return int(read_views(engine.live)[i]["generated"]) - before


def test_it_does_less_and_the_laws_hold(demo: Driven) -> None:
    outcome = slow(demo, 4.0)
    assert outcome.applied
    assert outcome.event is not None
    assert outcome.event["text"] == "h100-0 takes ×1 → ×4 as long"
    before = int(read_views(demo.live)[0]["generated"])  # over two minutes
    assert generated(demo, 0, 120.0) < 0.7 * before
    check_live(demo.live.world)
    assert snapshot(demo.live, 1.0, {}, 0.0)["instances"][0]["scales"] == [4.0, 4.0]


def test_deadlines_do_not_move(demo: Driven, two_minutes_in: Driven) -> None:
    calm, slowed = deepcopy(two_minutes_in), demo
    slow(slowed, 4.0)
    deadlines = []
    for engine in (calm, slowed):
        engine.run(240.0)
        rows = engine.live.world.workflows
        deadlines.append(dict(zip(rows["id"].tolist(), rows["slo_s"].tolist(), strict=True)))
    common = deadlines[0].keys() & deadlines[1].keys()
    assert len(common) > 10
    assert {k: deadlines[0][k] for k in common} == {k: deadlines[1][k] for k in common}


def test_its_undo_takes_it_back(demo: Driven) -> None:
    outcome = slow(demo, 4.0)
    assert outcome.event is not None
    assert outcome.event["old"] == {"slow": {"instance": "h100-0", "factor": 1.0}}
    assert slow(demo, 1.0, expected=4.0).applied
    demo.run(130.0)
    assert demo.live.fleet == demo.live.given
    assert not demo.live.switches


def test_it_goes_with_a_cap(demo: Driven) -> None:
    assert obey(demo.live, {"kind": "power_cap", "payload": {"tier": "h100-0", "cap_w": 400.0}}).applied
    assert slow(demo, 2.0).applied
    spec = demo.live.fleet.instances[0]
    assert (spec.power_cap_w, spec.prefill_scale, spec.decode_scale) == (400.0, 2.0, 2.0)
    demo.run(150.0)
    check_live(demo.live.world)


@pytest.mark.parametrize("later_s", [0.0, 5.0])
def test_a_restart_goes_on_at_the_same_speed(demo: Driven, later_s: float) -> None:
    slow(demo, 4.0)
    demo.run(120.0 + later_s)
    other = Driven(checkpoint.load(checkpoint.save(demo.live), demo.live.given, demo.live.source))
    for engine in (demo, other):
        engine.run(180.0)
    assert unlike_tables(demo.live.world, other.live.world) == []
    assert obey(other.live, {"kind": "slow", "payload": {"instance": "h100-0", "factor": 1.0}}).applied


@pytest.mark.parametrize("odd", [0.0, 0.2, 20.1, -1.0, float("nan"), True, "2", None])
def test_factors_out_of_bounds_are_refused(demo: Driven, odd: Any) -> None:
    assert "expected a number from 0.25 to 20" in slow(demo, odd).reason


def test_refused_with_a_reason(demo: Driven) -> None:
    assert "expected one of h100-0" in slow(demo, 2.0, "b200-0").reason
    assert slow(demo, 1.0).reason == "h100-0 takes 1 times as long already"
    assert slow(demo, 2.0, expected=3.0).reason == "it is 1.0 now, not 3.0 as when the command was made"
