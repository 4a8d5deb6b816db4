"""A live loop over a real store, and the what-if lab driven as a dashboard does."""

from typing import Any

from control.config import EngineSettings
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import start
from control.model.fleet import load_fleet
from control.workload.scenarios import scenario
from storage import commands, readers, runs
from storage.open import Store

Row = dict[str, Any]
SWEEP: Row = {"minutes": 2, "seeds": 2, "settings": [{"name": f"α {a}", "alpha": a} for a in (0.2, 0.9)]}


def loop_of(store: Store, name: str = "demo-mixed", seed: int = 0) -> Loop:
    """A scenario at its beginning."""
    mix = scenario(name)
    live = start(load_fleet(mix.fleet), Source(mix.name, seed, scenario=mix), mix.policy, 0.5, 1.0)
    return Loop(live, store, EngineSettings(), "0", lambda: False)


def go_on(loop: Loop, seconds: float) -> None:
    """Let so much simulated time pass."""
    until_s = loop.live.now_s + seconds
    while loop.live.now_s < until_s - 1e-6:
        loop.tick(min(10.0, until_s - loop.live.now_s))
        loop.record()


def forked(loop: Loop, store: Store, spec: Row = SWEEP) -> Row:
    """The run of a fork, once it is done."""
    commands.submit(store, "whatif", {"spec": spec}, "ann")
    loop.tick(0.1)
    for job in loop.forks.jobs:
        assert job.future is not None
        job.future.result(60.0)
    for _ in range(3):
        loop.tick(0.01)
    loop.record()
    return runs.recent(store, 1, kind="whatif", with_result=True)[0]


def order(loop: Loop, store: Store, kind: str, payload: Row) -> tuple[str, str | None]:
    """Have the loop take a command and commit; state and reason of it."""
    number = commands.submit(store, kind, payload, "ann")
    loop.tick(0.01)
    loop.record()
    row = commands.get(store, number)
    assert row is not None
    return row["state"], row["reason"]


def apply(loop: Loop, store: Store, run: int, setting: int, minutes: float = 0.0) -> tuple[str, str | None]:
    """Apply a setting of a run."""
    return order(loop, store, "apply_whatif", {"run": run, "setting": setting, "guard_minutes": minutes})


def undo(loop: Loop, store: Store, run: int) -> tuple[str, str | None]:
    """Take back the newest application of a run."""
    return order(loop, store, "undo_whatif", {"run": run})


def outcome(store: Store) -> tuple[str, str | None]:
    """State and reason of the newest command."""
    newest = commands.recent(store, 1)[0]
    return newest["state"], newest["reason"]


def kinds(store: Store) -> list[str]:
    """Kinds of all events, newest first."""
    return [event["kind"] for event in readers.events(store, 0.0, 100)]


def stored(store: Store, run: Row) -> Row:
    """The run's result now."""
    found = runs.get(store, run["id"])
    assert found is not None
    result: Row = found["result"]
    return result


def widen(store: Store, run: Row, low: float = 0.0, high: float = 1e6) -> None:
    """Promise a band of our choice."""
    for row in run["result"]["settings"]:
        band = row["lines"]["p95_s"]
        band["low"], band["high"] = [low] * len(band["low"]), [high] * len(band["high"])
    runs.update(store, run["id"], run["result"])
