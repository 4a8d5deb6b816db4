"""The lines that a fork goes on from end where it was made, and what came since is told apart."""

import time

import numpy as np
import pytest

from control.engine import past
from control.engine.past import LINES, past_lines
from control.engine.source import Source
from control.engine.state import Live, start
from control.model.fleet import load_fleet
from control.workload.scenarios import scenario
from storage.open import Store


@pytest.fixture
def live() -> Live:
    """A state at 400 simulated s."""
    mix = scenario("demo-mixed")
    made = start(load_fleet(mix.fleet), Source("demo-mixed", 0, scenario=mix), mix.policy, 0.5, 1.0)
    made.world.clock[0]["now_s"] = 400.0
    return made


@pytest.mark.parametrize(("at_s", "since"), [(400.0, []), (250.0, [260.0, 330.0, 400.0])])
def test_lines_are_parted_at_the_fork(
    live: Live, store: Store, monkeypatch: pytest.MonkeyPatch, at_s: float, since: list[float]
) -> None:
    times_s = np.array([50.0, 120.0, 190.0, 260.0, 330.0, 400.0])
    found = dict.fromkeys(LINES, times_s + 1.0) | {"sim_s": times_s, "at": time.time() - 400.0 + times_s}
    monkeypatch.setattr(past.readers, "samples", lambda *_: found)
    told = past_lines(store, live, at_s)
    before = [t for t in times_s.tolist() if at_s - past.PAST_S <= t <= at_s]
    assert told["times_s"] == [t - at_s for t in before]
    assert told["p95_s"] == [t + 1.0 for t in before]
    assert told["since"]["times_s"] == [t - at_s for t in since]
    assert told["since"]["queued"] == [t + 1.0 for t in since]
