"""A server on the twin keeps the times that the twin predicts: otherwise what is measured on it says nothing."""

import numpy as np
import pytest

from control.adapters.mock.core import Call, Flow
from control.adapters.mock.settings import MockSettings
from control.adapters.mock.twin import Twin, work_of
from control.model.fleet import Fleet
from control.policy.codes import COMPLETED
from control.twin.simulate import simulate
from control.twin.world import World
from tests.adapters.mock.clock import FakeClock
from tests.support import laws

ROUNDING_S = 1e-9


def settings(**more: object) -> MockSettings:
    """An H100 under Llama-3.1-8B."""
    return MockSettings(**{"gpu": "H100", "model": "Llama-3.1-8B", **more})  # type: ignore[arg-type]


def check_laws(world: World) -> None:
    """The laws of the twin that hold for a world which forgets the calls that have ended."""
    for law in (laws.check_queue, laws.check_batch, laws.check_blocks, laws.check_work):
        law(world, 0)
    laws.check_pool(world)


def arrivals(n: int, rate: float, seed: int = 1) -> tuple[list[Call], list[float]]:
    """Calls of mixed lengths, and when they come, s."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(1.0 / rate, n)).tolist()
    lengths = zip(rng.integers(20, 3000, n).tolist(), rng.integers(1, 200, n).tolist(), strict=True)
    return [Call(str(k), prompt, output) for k, (prompt, output) in enumerate(lengths)], times


class Run:
    """Calls through a core under a clock of the test's own."""

    def __init__(self, given: MockSettings, calls: list[Call], times: list[float]) -> None:
        self.clock = FakeClock()
        self.core = Twin(given, self.clock)
        self.zero_s = self.clock.now()
        self.seen: list[list[tuple[float, int]]] = [[] for _ in calls]
        self.flows: list[Flow] = []
        for k, (call, at_s) in enumerate(zip(calls, times, strict=True)):
            self.clock.run_until(self.zero_s + at_s)
            self.flows.append(self.core.submit(call, lambda k=k: self.note(k)))  # type: ignore[misc]

    def note(self, k: int) -> None:
        """Tokens of call `k` came."""
        self.seen[k].append((self.clock.now() - self.zero_s, self.flows[k].tokens))

    def to_the_end(self) -> "Run":
        """Let all calls end."""
        self.clock.run_out()
        return self


def simulated(given: MockSettings, calls: list[Call], times: list[float], exact: bool = False) -> World:
    """The same calls through the simulator."""
    flows = [Flow(call, 0.0) for call in calls]
    return simulate(work_of(flows, times, 0), Fleet("one", (given.spec,)), "rr-fcfs", exact=exact)


@pytest.mark.parametrize(
    "given", [settings(), settings(seats=4), settings(kv_tokens=6000)], ids=["roomy", "few seats", "little KV"]
)
def test_first_and_last_tokens_come_when_the_simulator_says(given: MockSettings) -> None:
    calls, times = arrivals(60, 6.0)
    run, world = Run(given, calls, times).to_the_end(), simulated(given, calls, times)
    assert (world.calls["state"] == COMPLETED).all()
    firsts = [seen[0][0] for seen in run.seen]
    lasts = [seen[-1][0] for seen in run.seen]
    np.testing.assert_allclose(firsts, world.calls["first_token_s"], atol=ROUNDING_S)
    np.testing.assert_allclose(lasts, world.calls["finished_s"], atol=ROUNDING_S)
    assert [flow.tokens for flow in run.flows] == [call.output_tokens for call in calls]
    assert run.core.load().preemptions == world.instances[0]["preemptions"]
    check_laws(run.core.world)


def test_every_token_is_told_at_its_time() -> None:
    calls, times = arrivals(12, 6.0)
    run = Run(settings(), calls, times).to_the_end()
    for call, seen in zip(calls, run.seen, strict=True):
        assert [tokens for _, tokens in seen] == list(range(1, call.output_tokens + 1))
        assert [at_s for at_s, _ in seen] == sorted(at_s for at_s, _ in seen)


def test_a_faster_clock_brings_the_same_tokens_sooner() -> None:
    calls, _ = arrivals(10, 20.0)
    slow = Run(settings(), calls, [0.0] * 10).to_the_end()
    fast = Run(settings(speed=10.0), calls, [0.0] * 10).to_the_end()
    for one, other in zip(slow.seen, fast.seen, strict=True):
        np.testing.assert_allclose(one[-1][0], 10.0 * other[-1][0], atol=1e-6)


def test_a_later_turn_finds_the_conversation_in_the_cache() -> None:
    run = Run(settings(), [Call("a", 1600, 17, stream=3)], [0.0]).to_the_end()
    later = run.core.submit(Call("b", 2000, 5, stream=3, history_tokens=1616), lambda: None)
    stranger = run.core.submit(Call("c", 2000, 5, stream=4, history_tokens=1616), lambda: None)
    run.clock.run_out()
    assert (later.cached_tokens, stranger.cached_tokens) == (1616, 0)


def test_calls_of_one_static_prompt_share_its_cache() -> None:
    shared = {"shared_key": 2, "shared_tokens": 800}
    run = Run(settings(), [Call("a", 1000, 3, stream=1, **shared)], [0.0]).to_the_end()  # type: ignore[arg-type]
    other = run.core.submit(Call("b", 1000, 3, stream=2, **shared), lambda: None)  # type: ignore[arg-type]
    run.clock.run_out()
    assert other.cached_tokens == 800


def test_kv_from_elsewhere_spares_the_prefill() -> None:
    here = Run(settings(), [Call("a", 8000, 3)], [0.0]).to_the_end()
    moved = Run(settings(), [Call("a", 8000, 3, external=True)], [0.0]).to_the_end()
    assert moved.seen[0][0][0] < here.seen[0][0][0] / 5
    assert moved.flows[0].cached_tokens == 0
    check_laws(moved.core.world)


@pytest.mark.parametrize("at_s", [0.0, 0.01, 0.5], ids=["as it comes", "while it prefills", "while it decodes"])
def test_a_cancelled_call_leaves_its_seat_to_the_next(at_s: float) -> None:
    run = Run(settings(seats=1), [Call("long", 3000, 20_000), Call("next", 10, 2)], [0.0, 0.0])
    run.clock.run_until(run.zero_s + at_s)
    run.core.cancel(run.flows[0])
    told = len(run.seen[0])
    run.clock.run_until(run.zero_s + at_s + 0.5)
    assert run.flows[0].ended
    assert len(run.seen[0]) == told
    assert run.flows[1].ended
    assert run.flows[1].tokens == 2
    assert (run.core.load().running, run.core.load().used_tokens) == (0, 0)
    check_laws(run.core.world)


def test_a_cancelled_call_that_waits_never_runs() -> None:
    run = Run(settings(seats=1), [Call("long", 100, 50), Call("waits", 10, 2)], [0.0, 0.1])
    run.clock.run_until(run.zero_s + 0.15)
    run.core.cancel(run.flows[1])
    run.clock.run_out()
    assert run.flows[0].tokens == 50
    assert list(run.core.admissions.latest) == [("long", 0)]


def test_a_lower_number_goes_first_where_priorities_count() -> None:
    calls = [Call("runs", 10, 50), *(Call(f"p{p}", 10, 2, priority=p) for p in (5, 0, -3, 0))]
    ordered = Run(settings(seats=1, scheduling_policy="priority"), calls, [0.0, 0.1, 0.1, 0.1, 0.1]).to_the_end()
    in_line = Run(settings(seats=1), calls, [0.0, 0.1, 0.1, 0.1, 0.1]).to_the_end()
    assert [id for id, _ in ordered.core.admissions.latest] == ["runs", "p-3", "p0", "p0", "p5"]
    assert [id for id, _ in in_line.core.admissions.latest] == ["runs", "p5", "p0", "p-3", "p0"]


def test_what_is_held_for_others_is_not_there_for_calls() -> None:
    run = Run(settings(kv_tokens=4000, max_model_len=640), [], [])
    held = run.core.hold(3200)
    assert run.core.load().used_tokens == held == 3200
    assert run.core.hold(3200) == 160  # a call of the longest context must always fit
    run.core.release(160)
    run.core.submit(Call("a", 600, 40), lambda: None)
    run.clock.run_out()
    check_laws(run.core.world)
    assert run.core.load().capacity_tokens == 4000
    run.core.release(held)
    assert run.core.load().used_tokens == 0


def test_a_slow_engine_takes_longer_from_that_moment_on() -> None:
    run = Run(settings(), [Call("a", 10, 101)], [0.0])
    run.clock.run_until(run.zero_s + 0.3)
    before = run.flows[0].tokens
    run.core.slow_down(4.0)
    run.clock.run_until(run.zero_s + 0.6)
    assert 0 < run.flows[0].tokens - before < before / 2
