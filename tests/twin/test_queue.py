"""The waiting list of an instance against a Python list."""

from hypothesis import given, settings
from hypothesis import strategies as st

from control.twin.pack import build_world
from control.twin.queue import push_back, push_front, remove
from tests.support.laws import queue_of
from tests.support.worlds import CallSpec, fleet, instance, lone_calls

N = 6
WORK, TWO = lone_calls([0.0] * N, [CallSpec(8)] * N), fleet(instance(), instance())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(actions=st.lists(st.tuples(st.integers(0, N - 1), st.booleans()), max_size=40))
def test_any_mix_of_arrivals_preemptions_and_admissions(actions: list[tuple[int, bool]]) -> None:
    """A call that waits is admitted; one that does not joins at the front or the back."""
    world, queue = build_world(WORK, TWO, "rr-fcfs"), list[int]()
    for c, front in actions:
        if c in queue:
            remove(world, 1, c)
            queue.remove(c)
        elif front:
            push_front(world, 1, c)
            queue.insert(0, c)
        else:
            push_back(world, 1, c)
            queue.append(c)
        assert queue_of(world, 1) == queue
        assert world.instances["n_waiting"].tolist() == [0, len(queue)]
    assert queue_of(world, 0) == []
