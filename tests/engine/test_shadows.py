"""Shadow policies: the same arrivals and the same mishaps under another policy."""

import pytest

from control.config import EngineSettings
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import start
from control.model.fleet import load_fleet
from control.policy.codes import DOWN
from control.workload.scenarios import scenario
from storage import commands, readers
from storage.open import Store


@pytest.fixture
def loop(store: Store) -> Loop:
    """The demo, a minute in."""
    mix = scenario("demo-mixed")
    live = start(load_fleet(mix.fleet), Source(mix.name, 0, scenario=mix), mix.policy, 0.5, 1.0)
    made = Loop(live, store, EngineSettings(), "0", lambda: False)
    go_on(made, 60.0)
    return made


def go_on(loop: Loop, seconds: float) -> None:
    """Let so much simulated time pass, the shadows with it."""
    until_s = loop.live.now_s + seconds
    while loop.live.now_s < until_s - 1e-6:
        loop.tick(min(10.0, until_s - loop.live.now_s))
        loop.shadows.wait()
        loop.record()
    loop.shadows.follow(loop.live.now_s)
    loop.shadows.wait()


def test_a_shadow_of_the_policy_in_force_is_the_live_fleet(loop: Loop, store: Store) -> None:
    commands.submit(store, "shadows", {"policies": ["hexgen", "rr-fcfs"]}, "ann")
    go_on(loop, 60.0)
    commands.submit(store, "kill", {"instance": "a100-0"}, "ann")
    go_on(loop, 60.0)
    commands.submit(store, "load_scale", {"load_scale": 1.5}, "ann")
    commands.submit(store, "revive", {"instance": "a100-0"}, "ann")
    go_on(loop, 240.0)
    same, other = loop.shadows.lives
    assert same.now_s == other.now_s == loop.live.now_s
    live = loop.live.world
    assert same.world.calls["uid"].tolist() == live.calls["uid"].tolist()
    assert same.world.calls["finished_s"].tolist() == live.calls["finished_s"].tolist()
    assert [row["policy"] for row in loop.shadows.told or []] == ["hexgen", "rr-fcfs"]
    assert other.world.calls["finished_s"].tolist() != live.calls["finished_s"].tolist()
    loop.record()
    newest = readers.latest_snapshot(store)
    assert newest is not None
    assert newest["payload"]["shadows"][1]["p95_s"] > newest["payload"]["shadows"][0]["p95_s"]


def test_a_failure_reaches_the_shadows_at_its_own_time(loop: Loop, store: Store) -> None:
    commands.submit(store, "shadows", {"policies": ["sjf"]}, "ann")
    go_on(loop, 20.0)
    commands.submit(store, "kill", {"instance": "a100-0"}, "ann")
    go_on(loop, 20.0)
    names = [spec.name for spec in loop.live.fleet.instances]
    assert loop.shadows.lives[0].world.instances[names.index("a100-0")]["state"] == DOWN


def test_shadows_end_when_none_is_named_and_bad_names_are_refused(loop: Loop, store: Store) -> None:
    commands.submit(store, "shadows", {"policies": ["sjf", "nope"]}, "ann")
    go_on(loop, 10.0)
    newest = commands.recent(store, 1)[0]
    assert newest["state"] == "refused"
    assert "'nope': expected some of hexgen" in newest["reason"]
    commands.submit(store, "shadows", {"policies": ["sjf"]}, "ann")
    go_on(loop, 10.0)
    assert loop.shadows.told
    commands.submit(store, "shadows", {"policies": []}, "ann")
    go_on(loop, 10.0)
    assert (loop.shadows.told, loop.shadows.lives) == (None, [])
