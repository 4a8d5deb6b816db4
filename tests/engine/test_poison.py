"""Commands that go wrong inside: each is refused with what happened, and the engine goes on."""

from typing import Any

import pytest

from control.engine import beside, orders, regret, shadows
from control.engine.forking import fork_of
from control.engine.lab import Job
from control.engine.loop import Loop
from control.tuning.replay import Past
from control.tuning.whatif.spec import read_spec
from storage import commands, readers, runs
from storage.open import Store
from tests.support.labs import SWEEP, forked, go_on, loop_of, order

Row = dict[str, Any]
ODD: tuple[Any, ...] = (None, [], ["zz"], {}, {"a": 1}, "", "zz", -1, 2.5, True, 10**18, [[[]]], [{"do": []}])
FIELDS = ("name", "alpha", "policy", "load", "slo_scale", "retention", "changes")
SPEC = read_spec({"settings": [{"name": "a"}]})
SPEC_FIELDS = ("minutes", "seeds", "arrivals", "back_s", "settings")


@pytest.fixture
def loop(store: Store) -> Loop:
    """The demo, a little in."""
    made = loop_of(store)
    go_on(made, 60.0)
    return made


def test_specs_of_every_wrong_type_are_decided_and_end_nothing(loop: Loop, store: Store) -> None:
    wrong: list[Row] = [{"settings": [{"name": "a", field: odd}]} for field in FIELDS for odd in ODD]
    wrong += [{"settings": [{"name": "a"}], field: odd} for field in SPEC_FIELDS for odd in ODD]
    wrong += [{"settings": [{"name": "a", "changes": [{"do": odd}]}]} for odd in ODD]
    wrong += [{"settings": [{"name": "a", "retention": {"need": odd, "idle_ttl_s": odd}}]} for odd in ODD]
    for deed in ("add", "role", "cap", "fail"):
        keys = ("like", "count", "instance", "role", "tier", "cap_w")
        wrong += [{"settings": [{"name": "a", "changes": [{"do": deed, **dict.fromkeys(keys, odd)}]}]} for odd in ODD]
    for spec in wrong:
        commands.submit(store, "whatif", {"spec": spec}, "ann")
    loop.tick(0.01)
    loop.forks.stop("the test has seen enough")
    loop.record()
    assert commands.pending(store) == []
    told = commands.recent(store, len(wrong))
    assert not [row["reason"] for row in told if "internal error" in (row["reason"] or "")]
    assert all("\n" not in row["reason"] and row["reason"] for row in told if row["state"] == "refused")


def test_of_two_forks_that_are_alike_each_is_itself(loop: Loop) -> None:
    given, spec = fork_of(loop.live, loop.history, SPEC), SPEC
    jobs = [Job(given, spec, {}), Job(given, spec, {})]
    second = jobs[1]
    jobs.remove(second)
    assert jobs[0] is not second


@pytest.mark.parametrize("error", [KeyError("kind"), RuntimeError("two\nlines"), MemoryError(), RecursionError()])
def test_whatever_a_command_raises_it_is_refused_and_the_engine_goes_on(
    loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: Any) -> None:
        raise error

    told: list[str] = []
    monkeypatch.setattr(beside.log, "exception", lambda text, *values: told.append(text % values))
    monkeypatch.setitem(orders.ORDERS, "tune", broken)
    state, reason = order(loop, store, "tune", {})
    assert state == "refused"
    assert reason is not None
    assert reason.startswith(f"internal error: {type(error).__name__}")
    assert "\n" not in reason
    assert len(told) == 1
    assert "(tune) failed" in told[0]
    assert order(loop, store, "alpha", {"alpha": 0.3})[0] == "applied"


def test_what_fails_halfway_is_taken_back(loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on(loop, 120.0)
    run = forked(loop, store, SWEEP | {"settings": [{"name": "two", "policy": "sjf", "alpha": 0.1}]})

    def broken(*_: Any) -> None:
        raise KeyError("alpha")

    monkeypatch.setitem(orders.ORDERS, "alpha", broken)
    applied = {"run": run["id"], "setting": 1, "guard_minutes": 0}
    assert order(loop, store, "apply_whatif", applied) == ("refused", "internal error: KeyError: 'alpha'")
    assert loop.live.policy == "hexgen"


def test_a_shadow_that_fails_ends_with_an_event(loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    order(loop, store, "shadows", {"policies": ["sjf"]})

    def broken(*_: Any) -> None:
        raise KeyError("kind")

    monkeypatch.setattr(shadows, "live_on", broken)
    for _ in range(3):
        future = loop.shadows.future
        if future is not None:
            future.exception()
        loop.tick(0.01)
    loop.record()
    event = readers.newest_event(store, "shadows")
    assert event is not None
    assert (event["text"], loop.shadows.lives) == ("shadows ended: internal error: KeyError", [])


def test_a_tuning_run_that_fails_is_told_and_the_engine_goes_on(
    loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(loop, 60.0)

    def broken(*_: Any) -> None:
        raise KeyError("kind")

    monkeypatch.setattr(Past, "sweep", broken)
    assert order(loop, store, "tune", {})[0] == "applied"
    loop.tuner.wait()
    assert order(loop, store, "alpha", {"alpha": 0.3})[0] == "applied"
    event = readers.newest_event(store, "tuning")
    assert event is not None
    assert event["text"] == "tuning failed: KeyError: 'kind'"


def test_a_replay_that_fails_at_once_is_a_run_that_says_so(
    loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("kind")

    monkeypatch.setattr(regret, "looked_up", broken)
    assert order(loop, store, "regret", {"decision": 1})[0] == "applied"
    loop.tick(0.01)
    (run,) = runs.recent(store, 9, kind="regret", with_result=True)
    assert run["result"] == {"problem": "the replay failed: KeyError"}
    assert loop.live.regrets == []
