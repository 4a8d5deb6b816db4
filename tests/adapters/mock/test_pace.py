"""Fixed times are kept to the millisecond, and seats are given in order."""

import pytest

from control.adapters.mock.core import Call, Flow
from control.adapters.mock.pace import Pace
from control.adapters.mock.settings import MockSettings
from tests.adapters.mock.clock import FakeClock

SLOT_S = 0.001


class Run:
    """A core of fixed times under a clock of the test's own; when tokens came, s."""

    def __init__(self, **settings: object) -> None:
        self.clock = FakeClock()
        self.core = Pace(MockSettings(**settings), self.clock)  # type: ignore[arg-type]
        self.came: dict[str, list[float]] = {}

    def submit(self, id: str, n: int, prompt: int = 10, **more: int) -> Flow:
        """A call of `n` tokens now."""
        times = self.came[id] = []
        began_s = self.clock.now()
        return self.core.submit(Call(id, prompt, n, **more), lambda: times.append(self.clock.now() - began_s))

    @property
    def admitted(self) -> list[str]:
        """Who was given a seat, in order."""
        return [id for id, _ in self.core.admissions.latest]


def test_every_token_comes_at_its_time_or_within_a_slot_after() -> None:
    run = Run(ttft_ms=20.0, tpot_ms=5.3)
    for k in range(50):
        run.clock.run_until(100.0 + k * 0.0007)
        run.submit(str(k), 32)
    run.clock.run_out()
    for times in run.came.values():
        assert len(times) == 32
        for k, at_s in enumerate(times):
            assert 0.02 + k * 0.0053 - 1e-9 <= at_s <= 0.02 + k * 0.0053 + SLOT_S + 1e-9


def test_seats_are_given_in_order_of_arrival_or_of_priority() -> None:
    for policy, order in (("fcfs", ["a", "b", "c", "d"]), ("priority", ["a", "c", "b", "d"])):
        run = Run(seats=1, scheduling_policy=policy)
        for id, priority in (("a", 0), ("b", 2), ("c", -1), ("d", 2)):
            run.submit(id, 3, priority=priority)
        assert (run.core.load().running, run.core.load().waiting) == (1, 3)
        run.clock.run_out()
        assert run.admitted == order


def test_a_call_that_does_not_fit_waits_for_kv() -> None:
    run = Run(kv_tokens=1000, ttft_ms=10.0, tpot_ms=1.0)
    run.submit("a", 100, prompt=700)
    run.submit("b", 100, prompt=300)
    assert run.core.load().waiting == 1
    run.clock.run_out()
    assert run.came["b"][0] > run.came["a"][-1]


@pytest.mark.parametrize("who", ["runs", "waits"])
def test_a_cancelled_call_generates_nothing_more(who: str) -> None:
    run = Run(seats=1)
    flows = {id: run.submit(id, 10) for id in ("runs", "waits", "next")}
    run.clock.run_until(100.06)
    run.core.cancel(flows[who])
    told = len(run.came[who])
    run.clock.run_out()
    assert len(run.came[who]) == told
    assert all(len(run.came[id]) == 10 for id in flows if id != who)
    assert (run.core.load().running, run.core.load().waiting, run.core.load().used_tokens) == (0, 0, 0)


def test_speed_and_slowness_scale_all_times() -> None:
    plain, fast = Run(ttft_ms=100.0), Run(ttft_ms=100.0, speed=4.0)
    fast.core.slow_down(2.0)
    for run in (plain, fast):
        run.submit("a", 11)
        run.clock.run_out()
    assert fast.came["a"][-1] == pytest.approx(plain.came["a"][-1] / 2, abs=SLOT_S)
