"""What a kill would cost, said before the click, beside what it then costs."""

from control.engine.forecast import forecasts
from control.policy.codes import DECODE, DOWN, PREFILL
from control.twin.acts import kill
from tests.support.live import Driven


def test_what_is_there_is_counted(demo: Driven) -> None:
    world, told = demo.live.world, forecasts(demo.live)
    for i, spec in enumerate(demo.live.fleet.instances):
        row, said = world.instances[i], told[spec.name]
        assert (said["running"], said["waiting"]) == (row["n_running"], row["n_waiting"])
        assert 0 <= said["deadlines_at_risk"] <= said["running"] + said["waiting"]
        assert (said["drain_s"] is None) == (row["queued_work_s"] <= 0.0)
    assert sum(said["running"] for said in told.values()) > 0


def test_a_kill_has_the_tokens_computed_again_that_were_foretold(demo: Driven) -> None:
    world = demo.live.world
    i = int(world.instances["n_running"].argmax())
    name = demo.live.fleet.instances[i].name
    said = forecasts(demo.live)[name]
    running = world.calls[
        (world.calls["instance"] == i) & ((world.calls["state"] == PREFILL) | (world.calls["state"] == DECODE))
    ]
    assert said["recompute_tokens"] >= int(running["kv"].sum()) > 0
    kill(world, i)
    assert world.instances[i]["state"] == DOWN
    assert name not in forecasts(demo.live)
