"""Mean waits against the formulas of queueing theory; and no call waits for ever where calls age.

An instance whose every iteration takes one step, whatever its batch, is a queue with `max_num_seqs` servers: a call is
served for as many steps as it has output tokens. A thousand steps a call on average make lengths all but continuous.
"""

from typing import NamedTuple

import numpy as np
import pytest

from control.policy.tables import Floats, Ints
from control.twin.kernel import advance
from control.twin.pack import build_world
from tests.support.worlds import fleet, instance, single_calls, with_constant_steps

LOAD = 0.7
MEAN_STEPS = 1000
STEP_S = 1.0 / MEAN_STEPS
AGING_S = 3.0


class Queue(NamedTuple):
    """A queue of Poisson arrivals with a mean service time of 1 s."""

    servers: int
    random_lengths: bool

    @property
    def wait_s(self) -> float:
        """Mean wait: Pollaczek-Khinchine for one server, Erlang's C for several."""
        if self.servers == 1:
            return LOAD / (1.0 - LOAD) * (1.0 if self.random_lengths else 0.5)
        return erlang_c(self.servers, LOAD * self.servers) / (self.servers * (1.0 - LOAD))


QUEUES = {"M/M/1": Queue(1, True), "M/D/1": Queue(1, False), "M/M/4": Queue(4, True)}
EACH = pytest.mark.parametrize("queue", QUEUES.values(), ids=QUEUES.keys())


def erlang_c(servers: int, offered: float) -> float:
    """Probability of waiting in M/M/c, by the recursion of Erlang's B."""
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    rho = offered / servers
    return blocked / (1.0 - rho * (1.0 - blocked))


def drawn(queue: Queue, n: int, seed: int) -> tuple[Floats, Ints]:
    """Arrival times and output lengths of `n` calls."""
    rng = np.random.default_rng(seed)
    arrivals_s = np.cumsum(rng.exponential(1.0 / (LOAD * queue.servers), n))
    steps = rng.geometric(STEP_S, n) if queue.random_lengths else np.full(n, MEAN_STEPS)
    return arrivals_s, steps


def mean_wait_s(queue: Queue, n: int, seed: int) -> float:
    """Mean wait of `n` calls in the twin, s."""
    arrivals_s, steps = drawn(queue, n, seed)
    work = single_calls(arrivals_s, np.ones(n, np.int64), steps)
    roomy = fleet(instance(max_num_seqs=queue.servers, kv_tokens=131_072, prefix_caching=False))
    world = with_constant_steps(build_world(work, roomy, "rr-fcfs"), STEP_S)
    advance(world, np.inf)
    served_s = world.calls["finished_s"] - world.calls["started_s"]
    assert np.allclose(served_s, steps * STEP_S, rtol=0.0, atol=1e-6)
    return float((world.calls["started_s"] - world.calls["ready_s"]).mean())


@EACH
def test_mean_wait_within_five_per_cent(queue: Queue) -> None:
    assert mean_wait_s(queue, 200_000, seed=3) == pytest.approx(queue.wait_s, rel=0.05)


@EACH
@pytest.mark.slow
def test_mean_wait_within_two_per_cent(queue: Queue) -> None:
    assert mean_wait_s(queue, 2_000_000, seed=1) == pytest.approx(queue.wait_s, rel=0.02)


def beyond_bound_s(aging_s: float, n: int = 2_000) -> float:
    """By how much a call's wait exceeds the allowed one at most, s; one server, least laxity, one call in two urgent.

    Allowed are `aging_s` and the service of the calls that were ahead as that time was over: the one in service, and
    those that came earlier and had not ended.
    """
    arrivals_s, steps = drawn(Queue(1, True), n, seed=4)
    work = single_calls(arrivals_s, np.ones(n, np.int64), steps)
    work.workflows["slo_s"] = np.where(np.arange(n) % 2, 1.0, 1000.0)
    single = fleet(instance(max_num_seqs=1, kv_tokens=131_072, prefix_caching=False))
    world = with_constant_steps(build_world(work, single, "rr-pq", aging_s=aging_s), STEP_S)
    advance(world, np.inf)
    ready_s, started_s, ended_s = (world.calls[name] for name in ("ready_s", "started_s", "finished_s"))
    aged_s = ready_s + AGING_S
    ahead = (ended_s > aged_s[:, None]) & ((ready_s < ready_s[:, None]) | (started_s < aged_s[:, None]))
    np.fill_diagonal(ahead, False)
    allowed_s = AGING_S + ahead @ (steps * STEP_S)
    return float((started_s - ready_s - allowed_s).max())


def test_no_call_waits_longer_than_aging_and_what_was_ahead_of_it() -> None:
    assert beyond_bound_s(AGING_S) <= 1e-6
    assert beyond_bound_s(np.inf) > 10.0  # without aging, patient calls are overtaken again and again


def test_waits_are_those_of_lindley() -> None:
    """One server: each wait is the last one plus the last service less the gap, at the pace of whole steps."""
    queue = Queue(1, True)
    arrivals_s, steps = drawn(queue, 5_000, seed=2)
    wait_s, waits_s = 0.0, [0.0]
    for gap_s, served in zip(np.diff(arrivals_s), steps[:-1], strict=True):
        wait_s = max(0.0, wait_s + served * STEP_S - gap_s)
        waits_s.append(wait_s)
    assert mean_wait_s(queue, 5_000, seed=2) == pytest.approx(np.mean(waits_s), rel=1e-6)
