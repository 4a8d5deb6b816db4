"""Runs ahead that end when nobody waits for them, and settings that are given up because they take too long."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from control.engine.fork_speed import lived
from control.engine.forking import fork_of
from control.engine.source import Source
from control.model.fleet import load_fleet
from control.tuning.whatif.fork import Base, Fork
from control.tuning.whatif.lab import NICE, Lab, give_way
from control.tuning.whatif.run import Ahead, run_ahead
from control.tuning.whatif.spec import Setting, read_spec
from control.workload.scenarios import scenario


class Asked:
    """Says yes at the `at`-th question."""

    def __init__(self, at: int) -> None:
        self.at, self.times = at, 0

    def __call__(self) -> bool:
        self.times += 1
        return self.times >= self.at


@pytest.fixture(scope="module")
def lived_through() -> Any:
    """The demo, three minutes in."""
    mix = scenario("demo-mixed")
    return lived(load_fleet(mix.fleet), Source(mix.name, 1, scenario=mix), mix.policy, 180.0)


@pytest.mark.parametrize("at", [1, 4, 40])
def test_a_setting_ends_in_the_midst_of_it_when_it_is_told_to(lived_through: Any, at: int) -> None:
    """At the first question; when the first seed is on its way; after one of them."""
    spec = read_spec({"minutes": 5, "settings": [{"name": "as it is"}]})
    asked = Asked(at)
    result = Lab(fork_of(*lived_through, spec), spec).evaluate(lambda so_far: None, asked)
    assert (result["state"], result["settings"]) == ("failed", [])
    assert asked.times <= at + 8  # each seed asks once more at most


def test_a_setting_that_takes_too_long_is_given_up_and_the_others_go_on(
    lived_through: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock of the test's own, which one setting takes far more of than another."""
    clock_s = [0.0]

    def slow(given: Fork, base: Base, setting: Setting, horizon_s: float, ask: Callable[[float], None]) -> Ahead:
        def asked(ran_s: float) -> None:
            clock_s[0] += 5.0 if setting.name == "heavy" else 0.1
            ask(ran_s)

        return run_ahead(given, base, setting, horizon_s, asked)

    monkeypatch.setattr("control.tuning.whatif.patience.monotonic", lambda: clock_s[0])
    monkeypatch.setattr("control.tuning.whatif.lab.run_ahead", slow)
    spec = read_spec({"minutes": 1, "seeds": 2, "settings": [{"name": "heavy", "load": 3.0}, {"name": "light"}]})
    result = Lab(fork_of(*lived_through, spec), spec, 20.0).evaluate(lambda so_far: None)
    told = [row["problem"] for row in result["settings"]]
    assert result["state"] == "done"
    assert (told[0], told[2]) == (None, None)
    assert told[1].startswith("too much work ahead: ")
    assert "after 20 s; ask for fewer minutes or seeds, or for less load" in told[1]


def test_pieces_change_nothing_of_what_is_foretold(lived_through: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = read_spec({"minutes": 5, "seeds": 2, "settings": [{"name": "as it is"}]})
    given = fork_of(*lived_through, spec)
    whole = Lab(given, spec).evaluate(lambda so_far: None)
    monkeypatch.setattr("control.tuning.whatif.run.PIECE_S", 0.7)
    monkeypatch.setattr("control.tuning.whatif.lab.MOST_HELD", 0)  # nor does it matter that each draws its work anew
    assert Lab(given, spec).evaluate(lambda so_far: None)["settings"] == whole["settings"]


def test_the_first_setting_is_told_of_after_its_first_seeds_and_then_whole(lived_through: Any) -> None:
    spec = read_spec({"minutes": 2, "seeds": 5, "settings": [{"name": "x", "alpha": 0.2}]})
    told: list[dict[str, Any]] = []
    result = Lab(fork_of(*lived_through, spec), spec).evaluate(told.append)
    (early,) = told[0]["settings"]
    assert (told[0]["state"], told[0]["progress"], early["seeds"]) == ("running", 0.0, 2)
    assert early["lines"]["p95_s"].keys() == result["settings"][0]["lines"]["p95_s"].keys()
    assert told[0]["first_s"] == result["first_s"] > 0.0
    assert not any("seeds" in row for row in (*told[1]["settings"], *result["settings"]))
    again = Lab(fork_of(*lived_through, spec), spec)
    again.early = lambda *_: []  # type: ignore[method-assign]
    assert again.evaluate(lambda so_far: None)["settings"] == result["settings"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own here")
def test_what_runs_ahead_gives_way_to_what_shows_it() -> None:
    def mine() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual = mine()
    with ThreadPoolExecutor(1, initializer=give_way) as pool:
        assert pool.submit(mine).result() == max(usual, NICE)
    assert mine() == usual
