"""The heap against a dictionary that is searched."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from control.twin.heap import new_heap, next_time, schedule, unschedule

SIZE = 9
TIMES = st.integers(0, 5).map(float)  # few values: many ties
ACTIONS = st.lists(st.tuples(st.integers(0, SIZE - 1), st.none() | TIMES), max_size=60)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(actions=ACTIONS)
def test_top_is_the_earliest_and_the_lowest_of_equals(actions: list[tuple[int, float | None]]) -> None:
    """Members are scheduled, moved and taken out (None) in any order."""
    heap, due = new_heap(SIZE), dict[int, float]()
    for member, time_s in actions:
        if time_s is None:
            unschedule(heap, member)
            due.pop(member, None)
        else:
            schedule(heap, member, time_s)
            due[member] = time_s
        assert heap.size[0] == len(due)
        assert next_time(heap) == min(due.values(), default=math.inf)
        assert all((heap.place[k] >= 0) == (k in due) for k in range(SIZE))
        if due:
            assert heap.order[0] == min(due, key=lambda k: (due[k], k))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(times=st.lists(TIMES, min_size=SIZE, max_size=SIZE))
def test_drained_in_order_of_time_then_number(times: list[float]) -> None:
    heap, drained = new_heap(SIZE), []
    for member, time_s in enumerate(times):
        schedule(heap, member, time_s)
    while heap.size[0]:
        drained.append(int(heap.order[0]))
        unschedule(heap, drained[-1])
    assert drained == sorted(range(SIZE), key=lambda k: (times[k], k))
