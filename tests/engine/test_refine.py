"""Profiles of real servers follow what is served."""

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control.engine.refine import EVERY_S, LEAST, WINDOW_S, Refiner
from control.engine.spare import start_gateway
from control.engine.state import Live
from control.model.fleet import Fleet, InstanceSpec
from control.tuning.served import BOUNDS, Served, compare, fit, replay

SERVER = InstanceSpec("s", "H100", "Llama-3.1-8B", url="http://s")


def live() -> Live:
    """A real server beside a simulated instance."""
    return start_gateway(Fleet("one", (SERVER, InstanceSpec("t", "H100", "Llama-3.1-8B"))), "hexgen", 0.5)


def served_by(spec: InstanceSpec, n: int = 200, rate: float = 10.0, seed: int = 1) -> list[Served]:
    """Calls as a server would answer them that is exactly like `spec`, `rate` of them a second."""
    rng = np.random.default_rng(seed)
    sizes = zip(rng.integers(50, 2000, n).tolist(), rng.integers(5, 400, n).tolist(), strict=True)
    times = np.cumsum(rng.exponential(1.0 / rate, n)).tolist()
    calls = [Served(at, *size, 0.0, 0.0) for at, size in zip(times, sizes, strict=True)]
    rows = replay(spec, calls)
    first = (rows["first_token_s"] - rows["ready_s"]).tolist()
    whole = (rows["finished_s"] - rows["ready_s"]).tolist()
    return [call._replace(ttft_s=a, took_s=b) for call, a, b in zip(calls, first, whole, strict=True)]


@pytest.mark.parametrize("rate", [1.0, 10.0, 20.0])
def test_a_server_that_is_as_its_profile_says_does_not_drift_however_loaded_it_is(rate: float) -> None:
    seen = compare(SERVER, served_by(SERVER, rate=rate))
    assert seen is not None
    assert seen.calls >= LEAST
    assert seen.ttft_drift == pytest.approx(0.0, abs=1e-9)
    assert seen.tpot_drift == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("rate", [1.0, 10.0, 20.0])
def test_a_fit_finds_how_much_slower_a_server_is(rate: float) -> None:
    found = fit(SERVER, served_by(replace(SERVER, prefill_scale=1.5, decode_scale=1.2), rate=rate))
    assert found.prefill_scale == pytest.approx(1.5, rel=0.05)
    assert found.decode_scale == pytest.approx(1.2, rel=0.05)


def test_a_fit_stays_in_bounds() -> None:
    slow = [call._replace(ttft_s=900.0, took_s=1e6) for call in served_by(SERVER)]
    found = fit(SERVER, slow)
    assert max(found.prefill_scale, found.decode_scale) <= BOUNDS[1]


def test_calls_without_a_stream_load_the_server_and_are_not_judged() -> None:
    calls = served_by(SERVER)
    quiet = [call._replace(ttft_s=float("nan")) if k % 2 else call for k, call in enumerate(calls)]
    seen = compare(SERVER, quiet)
    assert seen is not None
    assert seen.calls < len(calls) / 2
    assert seen.tpot_drift == pytest.approx(0.0, abs=1e-9)
    assert compare(SERVER, [call._replace(ttft_s=float("nan")) for call in calls]) is None
    assert compare(SERVER, []) is None


def test_costs_follow_what_was_served_on_that_server_alone() -> None:
    state, refiner = live(), Refiner()
    before = state.world.costs.decode_ms[state.world.instances["profile"]].copy()
    state.served[0] = deque(served_by(replace(SERVER, prefill_scale=2.0, decode_scale=2.0)))
    refiner.look(state)
    assert state.compared[0]["tpot_drift"] > 0.5
    assert state.fleet == state.given  # not before the lock is held
    (told,) = refiner.apply(state)
    assert told.startswith("s: prefill now x1.4")
    after = state.world.costs.decode_ms[state.world.instances["profile"]]
    np.testing.assert_allclose(after[0], state.fleet.instances[0].decode_scale * before[0])
    np.testing.assert_array_equal(after[1], before[1])
    assert refiner.apply(state) == []


def test_the_same_calls_are_looked_at_once_and_newer_ones_go_on_from_there() -> None:
    state, refiner = live(), Refiner()
    slower = replace(SERVER, prefill_scale=2.0, decode_scale=2.0)
    state.served[0] = deque(served_by(slower))
    for _ in range(3):
        refiner.look(state)
        refiner.apply(state)
        state.world.clock[0]["now_s"] += EVERY_S
    assert state.refined[0] == 1
    for seed in range(5):
        state.served[0].extend(
            call._replace(sent_s=call.sent_s + 1000.0 * (seed + 1)) for call in served_by(slower, seed=seed)
        )
        refiner.look(state)
        refiner.apply(state)
        state.world.clock[0]["now_s"] += EVERY_S
    assert state.fleet.instances[0].decode_scale == pytest.approx(2.0, rel=0.05)


def test_servers_are_looked_at_in_turn_one_at_a_time() -> None:
    servers = tuple(replace(SERVER, name=f"s{k}", url=f"http://s{k}") for k in range(3))
    state, refiner = start_gateway(Fleet("three", servers), "hexgen", 0.5), Refiner()
    state.served = {i: deque(served_by(SERVER)) for i in range(3)}
    for count in (1, 2, 3, 3):
        refiner.look(state)
        assert len(state.compared) == count
    for i in range(3):
        state.served[i].extend(call._replace(sent_s=call.sent_s + 1000.0) for call in served_by(SERVER, n=80))
    before = {i: dict(row) for i, row in state.compared.items()}
    refiner.look(state)
    assert state.compared == before  # too soon
    state.world.clock[0]["now_s"] += EVERY_S
    for count in (1, 2, 3):
        refiner.look(state)
        assert sum(state.compared[i] != before[i] for i in range(3)) == count


@pytest.mark.parametrize(
    ("drift", "load"),
    [
        pytest.param(1.01, {}, id="little drift"),
        pytest.param(2.0, {"n": LEAST}, id="few calls"),  # of so few not all are judged
        pytest.param(2.0, {"n": 60, "rate": LEAST / WINDOW_S}, id="old calls"),  # most are too old
    ],
)
def test_little_drift_and_few_calls_change_nothing(drift: float, load: dict[str, Any]) -> None:
    state, refiner = live(), Refiner()
    state.served[0] = deque(served_by(replace(SERVER, decode_scale=drift), **load))
    refiner.look(state)
    assert refiner.apply(state) == []
    assert state.fleet == state.given
