"""Forks of a live state: what they foretell, and that they leave it alone."""

import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from control.cli.main import main
from control.engine.fork_speed import lived
from control.engine.forking import fork_of
from control.engine.history import History
from control.engine.record import live_on
from control.engine.source import Source
from control.engine.state import Live
from control.errors import InputError, SettingError
from control.metrics.slo import overdue_s
from control.model.fleet import load_fleet
from control.tuning.whatif import file as fork_file
from control.tuning.whatif.file import MAGIC, digest, load_fork, save_fork
from control.tuning.whatif.lab import Lab, banded
from control.tuning.whatif.spec import read_spec
from control.twin.world import World, fork
from control.workload.scenarios import scenario
from tests.support import laws
from tests.support.live import BY_INSTANCE

Row = dict[str, Any]


def some_minutes_in(name: str = "demo-mixed", minutes: float = 12.0) -> tuple[Live, History]:
    """A scenario that has run for so long."""
    mix = scenario(name)
    return lived(load_fleet(mix.fleet), Source(name, 1, scenario=mix), mix.policy, 60.0 * minutes)


def ahead(live: Live, history: History, spec: Row) -> Row:
    """The result of a fork."""
    read = read_spec(spec)
    return Lab(fork_of(live, history, read), read).evaluate(lambda so_far: None)


def bytes_of(world: World) -> bytes:
    """All of a world's tables that a run changes."""
    parts = (world.clock, world.instances, world.workflows, world.calls, world.prefixes, world.pins, world.runs.time)
    return b"".join(part.tobytes() for part in parts)


@pytest.fixture(scope="module")
def demo() -> tuple[Live, History]:
    return some_minutes_in()


def figure(result: Row, index: int, name: str) -> float:
    """The mean of a figure of a setting."""
    setting = next(row for row in result["settings"] if row["index"] == index)
    assert setting["problem"] is None, setting["problem"]
    return float(setting["figures"][name]["mean"])


@pytest.mark.parametrize("name", ["demo-mixed", "agents"])
def test_with_its_own_future_a_fork_foretells_what_then_happens(name: str) -> None:
    """Same code, same world: latencies, queues and debt to 1e-9."""
    live, history = some_minutes_in(name, 10.0)
    result = ahead(live, history, {"arrivals": "own", "minutes": 5, "settings": [{"name": "as it is"}]})
    lines, forked_s, window_s = result["settings"][0]["lines"], live.now_s, live.rolling.window_s
    before = [(e.at_s, e.latency_s) for e in live.rolling.ended if e.done]
    for k, time_s in enumerate(result["times_s"]):
        live_on(live, forked_s + time_s, history)
        after = [(arrival + latency, latency) for arrival, latency in history.latencies if arrival + latency > forked_s]
        seen = [latency for at, latency in (*before, *after) if live.now_s - window_s < at <= live.now_s]
        if seen:
            assert lines["p95_s"]["mean"][k] == pytest.approx(float(np.percentile(seen, 95)), rel=1e-9)
        assert lines["queued"]["mean"][k] == live.world.instances["n_waiting"].sum()
        debt_s = float(overdue_s(live.world.workflows, live.now_s).sum())
        assert lines["slo_debt_s"]["mean"][k] == pytest.approx(debt_s, rel=1e-9, abs=1e-9)
    done = [latency for arrival, latency in history.latencies if arrival + latency > forked_s]
    assert figure(result, 0, "p95_s") == pytest.approx(float(np.percentile(done, 95)), rel=1e-9)


def test_a_fork_changes_nothing_and_comes_out_the_same_again(demo: tuple[Live, History]) -> None:
    live, history = demo
    before = bytes_of(live.world)
    spec = {"minutes": 3, "seeds": 3, "settings": [{"name": "all", "alpha": 0.1, "policy": "sjf", "load": 1.5}]}
    first, second = ahead(live, history, spec), ahead(live, history, spec)
    assert first["settings"] == second["settings"]
    assert bytes_of(live.world) == before


def test_an_exported_fork_runs_again_to_the_same_numbers(
    demo: tuple[Live, History], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    live, history = demo
    spec = read_spec(
        {"minutes": 2, "seeds": 2, "settings": [{"name": "α 0.2", "alpha": 0.2}, {"name": "x", "load": 2.0}]}
    )
    given = fork_of(live, history, spec)
    result = Lab(given, spec).evaluate(lambda so_far: None)
    path = tmp_path / "one.headway"
    path.write_bytes(save_fork(given, spec, result, {"from": "a test"}))
    again, same_spec, stored, about = load_fork(path.read_bytes(), "one")
    assert (same_spec, about) == (spec, {"from": "a test"})
    assert Lab(again, same_spec).evaluate(lambda so_far: None)["settings"] == stored["settings"] == result["settings"]
    capfd.readouterr()
    assert main(["whatif", str(path), "--json"]) == 0
    assert orjson.loads(capfd.readouterr().out)["same"] is True


def test_a_file_that_is_no_fork_is_refused(tmp_path: Path) -> None:
    path, pipe = tmp_path / "no.headway", tmp_path / "pipe"
    path.write_bytes(b"nothing")
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="no fork of this version"):
        load_fork(path.read_bytes(), str(path))
    for file in (str(path), str(tmp_path / "none"), str(tmp_path), str(pipe)):
        assert main(["whatif", file]) == 2


def sealed(packed: bytes) -> bytes:
    """A file whose sum is right, whatever is in it."""
    return MAGIC + digest(packed) + b"\n" + packed


def test_a_file_that_was_changed_or_would_mislead_a_kernel_is_refused(
    demo: tuple[Live, History], monkeypatch: pytest.MonkeyPatch
) -> None:
    live, history = demo
    spec = read_spec({"minutes": 1, "seeds": 1, "settings": [{"name": "x", "alpha": 0.2}]})
    given = fork_of(live, history, spec)
    blob = save_fork(given, spec, {}, {})
    for changed in (blob[:-1], blob[:-9] + b"x" + blob[-8:], blob + b"x"):
        with pytest.raises(InputError, match="one: damaged or changed"):
            load_fork(changed, "one")
    for name, value in (("instance", 2**20), ("step", 9999), ("workflow", -2), ("next", 10**9)):
        world = fork(given.world)
        world.calls[name][-1] = value
        with pytest.raises(InputError, match=rf"one: calls.{name} holds"):
            load_fork(save_fork(given._replace(world=world), spec, {}, {}), "one")
    with pytest.raises(InputError, match="no fork that can be read"):
        load_fork(sealed(zlib.compress(b"no zip")), "one")
    monkeypatch.setattr(fork_file, "LARGEST", 1000)
    with pytest.raises(InputError, match="unpacked"):
        load_fork(blob, "one")


def test_settings_do_what_they_say(demo: tuple[Live, History]) -> None:
    live, history = demo
    first, second = live.fleet.instances[0], live.fleet.instances[1]
    changes: list[list[Row]] = [
        [{"do": "add", "like": first.name, "count": 2}],
        [{"do": "fail", "instance": first.name}, {"do": "fail", "instance": second.name}],
        [{"do": "cap", "tier": first.gpu, "cap_w": 300.0}],
        [{"do": "drain", "instance": first.name}],
        [{"do": "fail", "instance": "nobody"}],
        [{"do": "cap", "tier": first.gpu, "cap_w": 5.0}],
    ]
    settings: list[Row] = [{"name": f"{k}", "changes": one} for k, one in enumerate(changes)]
    settings += [{"name": "load", "load": 2.0}, {"name": "quiet", "load": 0.5}, {"name": "slo", "slo_scale": 0.2}]
    result = ahead(live, history, {"seeds": 4, "settings": settings})
    base_s, base_w = figure(result, 0, "p95_s"), figure(result, 0, "power_w")
    assert figure(result, 1, "p95_s") < base_s < figure(result, 2, "p95_s")
    assert figure(result, 3, "power_w") < base_w
    assert figure(result, 4, "p95_s") > base_s
    assert [row["problem"] for row in result["settings"][5:7]] == [
        f"'nobody' is no instance: expected one of {', '.join(spec.name for spec in live.fleet.instances)}",
        f"{first.name} ({first.gpu}) takes a cap from 245 to 700 W per GPU",
    ]
    assert figure(result, 7, "slo_debt_s") > figure(result, 8, "slo_debt_s")
    assert figure(result, 9, "slo_attainment") < figure(result, 0, "slo_attainment")
    assert result["settings"][1]["why_not"] == "hardware is bought first"
    assert result["settings"][3]["commands"] == [
        ["power_caps", {"caps": {spec.name: 300.0 for spec in live.fleet.instances if spec.gpu == first.gpu}}]
    ]


def test_tables_stay_consistent_in_a_fork_that_gained_instances_and_drew_lengths(demo: tuple[Live, History]) -> None:
    from control.tuning.whatif.apply import Course, put_in_force
    from control.tuning.whatif.deck import deck_of
    from control.tuning.whatif.fork import resampled

    live, history = demo
    spec = read_spec({"settings": [{"name": "x", "changes": [{"do": "add", "like": "l4-0", "count": 3}]}]})
    given = fork_of(live, history, spec)
    base = resampled(given, deck_of(given.contents, len(given.names.steps)), 0, 1.0, 1.0, 300.0)
    course = Course(base.world, given.fleet, [])
    put_in_force(course, spec.settings[1], given.form)
    for k in range(1, 60):
        course.run_to(given.now_s + 5.0 * k)
        for i in range(len(course.fleet.instances)):
            for check in BY_INSTANCE:
                check(course.world, i)
    assert (course.world.instances["finished"][-3:] > 0).all()
    laws.check_blocks(course.world, len(course.fleet.instances) - 1)


def test_nobody_looks_up_how_long_an_answer_will_be(demo: tuple[Live, History]) -> None:
    """The true lengths of open calls leave no trace in what is foretold."""
    live, history = demo
    spec = {"minutes": 2, "seeds": 2, "settings": [{"name": "as it is"}]}
    honest = ahead(live, history, spec)
    known = live.world.calls["output_tokens"].copy()
    is_open = np.isin(live.world.calls["state"], (0, 1)) & (
        live.world.workflows["state"][live.world.calls["workflow"]] == 1
    )
    live.world.calls["output_tokens"][is_open] = 7
    try:
        told = ahead(live, history, spec)
    finally:
        live.world.calls["output_tokens"] = known
    assert told["settings"][0]["lines"]["queued"] == honest["settings"][0]["lines"]["queued"]
    assert told["settings"][0]["figures"]["p95_s"] == honest["settings"][0]["figures"]["p95_s"]


def test_the_past_can_be_forked_as_far_as_states_are_kept(demo: tuple[Live, History]) -> None:
    live, history = demo
    back = fork_of(live, history, read_spec({"back_s": 240.0, "settings": [{"name": "as it is"}]}))
    assert back.now_s == pytest.approx(live.now_s - 240.0)
    assert all(arrival.arrival_s <= back.now_s for arrival in back.arrivals)
    result = ahead(
        live, history, {"back_s": 300.0, "minutes": 4, "arrivals": "own", "settings": [{"name": "as it is"}]}
    )
    came = [a + latency for a, latency in history.latencies if live.now_s - 300.0 < a + latency <= live.now_s - 60.0]
    assert figure(result, 0, "throughput_wps") == pytest.approx(len(came) / 240.0, rel=0.1)
    with pytest.raises(SettingError, match=r"no state is kept from so long ago; the oldest is \d+ s old"):
        fork_of(live, history, read_spec({"back_s": 7000.0, "settings": [{"name": "as it is"}]}))


def test_the_past_can_be_forked_before_all_kinds_have_ended() -> None:
    """In the first half minute most workflows under way are of a kind of which nothing has ended yet."""
    live, history = some_minutes_in("diurnal", 0.4)
    kinds = {content.kind for content in history.ended}
    active = live.world.workflows[live.world.workflows["state"] == 1]
    strange = active[~np.isin(active["kind"], list(kinds))]
    assert len(strange)
    for back_s in range(1, 12):
        given = fork_of(live, history, read_spec({"back_s": back_s, "settings": [{"name": "as it is"}]}))
        came = set(given.world.workflows["arrival_s"].tolist())
        assert {a for a in strange["arrival_s"].tolist() if a <= given.now_s} <= came
    assert ahead(live, history, {"back_s": 10, "minutes": 1, "settings": [{"name": "as it is"}]})["state"] == "done"


def test_too_little_seen_is_said(demo: tuple[Live, History]) -> None:
    mix = scenario("demo-mixed")
    live, history = lived(load_fleet(mix.fleet), Source("demo-mixed", 1, scenario=mix), mix.policy, 2.0)
    with pytest.raises(SettingError, match="too few to draw from; wait a little"):
        fork_of(live, history, read_spec({"settings": [{"name": "as it is"}]}))


def test_a_band_of_eight_draws_holds_about_four_of_five() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        draws = rng.normal(size=9)
        low, high = banded(draws[:8])
        inside += low <= draws[8] <= high
    assert 0.74 <= inside / 2000 <= 0.82


@pytest.mark.slow
def test_the_band_holds_what_then_happens_in_about_four_of_five_forks() -> None:
    """50 forks, 5 minutes apart, of a stationary scenario: the realised P95 lies in the 80 % band in 34 to 46."""
    mix = replace(scenario("demo-mixed"), swing=0.0, rate=1.3)
    live, history = lived(load_fleet(mix.fleet), Source(mix.name, 3, scenario=mix), mix.policy, 1800.0)
    inside = 0
    for _ in range(50):
        forked_s = live.now_s
        band = ahead(live, history, {"settings": [{"name": "as it is"}]})["settings"][0]["figures"]["p95_s"]
        live_on(live, forked_s + 300.0, history)
        done = [latency for arrival, latency in history.latencies if arrival + latency > forked_s]
        inside += band["low"] <= float(np.percentile(done, 95)) <= band["high"]
    assert 34 <= inside <= 46
