"""Virtual counters: who is lifted, who is charged, who goes first."""

from dataclasses import dataclass

import pytest

from control.policy.vtc import vtc_arrive, vtc_charge, vtc_is_before
from tests.support import tables


@dataclass(frozen=True)
class Case:
    """Counters of three workflows, whose calls wait, and the counter of workflow 0 after a call of it came."""

    words: str
    tokens: tuple[float, float, float]
    waiting: tuple[int, ...]
    after: float


CASES = (
    Case("nobody waits: it keeps what it has", (5, 9, 9), (), 5),
    Case("it is lifted to the one that waits", (5, 9, 7), (1,), 9),
    Case("it is lifted to the least of those that wait", (5, 9, 7), (1, 2, 1), 7),
    Case("it is never lowered", (8, 9, 7), (1, 2), 8),
    Case("one that has a call waiting is not lifted again", (5, 9, 7), (1, 0, 2), 5),
    Case("those that do not wait do not count", (5, 6, 7), (2,), 7),
)


@pytest.mark.parametrize("case", CASES, ids=[case.words for case in CASES])
def test_arrival(case: Case) -> None:
    counters, [instance] = tables.counters(*case.tokens), tables.instances({"seen": 3})
    queue = tables.calls(*({"workflow": w} for w in case.waiting))
    instance["wait_head"] = 0 if case.waiting else -1
    vtc_arrive(instance, counters, queue, 0)
    assert counters["tokens"].tolist() == [case.after, *case.tokens[1:]]
    assert counters["seen"].tolist() == [1, 2, 3]
    assert instance["seen"] == 3


def test_newcomers_are_numbered_in_the_order_in_which_they_come() -> None:
    counters, [instance] = tables.counters(0, 0, 0), tables.instances({"wait_head": -1})
    counters["seen"] = 0
    for workflow in (2, 0, 2):
        vtc_arrive(instance, counters, tables.calls(), workflow)
    assert counters["seen"].tolist() == [2, 0, 1]
    assert instance["seen"] == 2


def test_generated_tokens_are_charged_twice() -> None:
    counters = tables.counters(1, 0)
    vtc_charge(counters, 0, 100, 7)
    assert counters["tokens"].tolist() == [115.0, 0.0]


@pytest.mark.parametrize(
    ("tokens", "a", "b", "before"),
    [((1, 2), 0, 1, True), ((2, 1), 0, 1, False), ((1, 1), 0, 1, True), ((1, 1), 1, 0, False), ((1, 1), 0, 0, False)],
    ids=["smaller", "larger", "equal, seen first", "equal, seen later", "itself"],
)
def test_order(tokens: tuple[float, float], a: int, b: int, before: bool) -> None:
    assert vtc_is_before(tables.counters(*tokens), a, b) == before
