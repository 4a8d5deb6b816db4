"""An indexed binary heap of times: the next event in O(log n), moved or removed in place.

Member k is due at `time[k]`; ties go to the lower number, so the order of events never depends on history.
"""

from typing import NamedTuple

import numpy as np

from control.jit import compiled
from control.policy.tables import Floats, Ints


class Heap(NamedTuple):
    """Members 0 .. n - 1, of which `size[0]` are in the heap."""

    time: Floats  # [n] when each member is due, s
    order: Ints  # [n] members in heap order
    place: Ints  # [n] position of each member in `order`, -1: not in
    size: Ints  # [1]


def new_heap(n: int) -> Heap:
    """An empty heap of `n` possible members."""
    return Heap(np.full(n, np.inf), np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(1, np.int64))


@compiled
def is_before(heap: Heap, a: int, b: int) -> bool:
    """Whether member `a` is due before member `b`."""
    return heap.time[a] < heap.time[b] or (heap.time[a] == heap.time[b] and a < b)


@compiled
def settle(heap: Heap, at: int, member: int) -> None:
    """Put `member` at position `at`."""
    heap.order[at] = member
    heap.place[member] = at


@compiled
def sift_up(heap: Heap, at: int) -> None:
    """Move the member at position `at` towards the top until its parent is due earlier."""
    member = heap.order[at]
    while at > 0:
        parent = (at - 1) // 2
        if not is_before(heap, member, heap.order[parent]):
            break
        settle(heap, at, heap.order[parent])
        at = parent
    settle(heap, at, member)


@compiled
def sift_down(heap: Heap, at: int) -> None:
    """Move the member at position `at` away from the top until its children are due later."""
    size, member = heap.size[0], heap.order[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_before(heap, heap.order[child + 1], heap.order[child]):
            child += 1
        if not is_before(heap, heap.order[child], member):
            break
        settle(heap, at, heap.order[child])
        at = child
    settle(heap, at, member)


@compiled
def schedule(heap: Heap, member: int, time_s: float) -> None:
    """Make `member` due at `time_s`, whether it is in the heap or not."""
    heap.time[member] = time_s
    if heap.place[member] < 0:
        settle(heap, heap.size[0], member)
        heap.size[0] += 1
    sift_up(heap, heap.place[member])
    sift_down(heap, heap.place[member])


@compiled
def unschedule(heap: Heap, member: int) -> None:
    """Take `member` out, if it is in."""
    at = heap.place[member]
    if at < 0:
        return
    heap.place[member] = -1
    heap.size[0] -= 1
    last = heap.order[heap.size[0]]
    if last != member:
        settle(heap, at, last)
        sift_up(heap, at)
        sift_down(heap, heap.place[last])


@compiled
def next_time(heap: Heap) -> float:
    """When the next member is due, s; inf when the heap is empty."""
    return heap.time[heap.order[0]] if heap.size[0] > 0 else np.inf
