"""Rows of what ended may be fewer than what ended; sums and counters may not."""

import pytest

from control.config import EngineSettings
from control.engine.door import Door, Identity
from control.engine.loop import Loop
from control.engine.record import MOST_ROWS_PER_S, Most, rows_of, take
from control.engine.spare import start_gateway
from control.engine.state import Live
from control.engine.view import snapshot
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import COMPLETED, NO_CAUSE
from storage import readers
from storage.open import Store

REQUESTS = 300


def served(n: int) -> Live:
    """A live state through whose door `n` lone requests have gone, the journal not drained."""
    fleet = Fleet("pair", tuple(InstanceSpec(f"s{k}", "H100", "Llama-3.1-8B", url=f"http://s{k}") for k in range(2)))
    live = start_gateway(fleet, "hexgen", 0.5)
    door = Door(live, lambda: None)
    for _ in range(n):
        uid, _ = door.enter(Identity(), 100, 1)
        door.ends(uid, COMPLETED, NO_CAUSE, 100, 10, 0)
    return live


def test_all_are_counted_and_added_up_though_few_get_a_row() -> None:
    all_rows, few_rows = served(REQUESTS), served(REQUESTS)
    decisions, workflows = rows_of(all_rows, take(all_rows), None, Most())
    assert (len(decisions), len(workflows)) == (REQUESTS, REQUESTS)
    decisions, workflows = rows_of(few_rows, take(few_rows), None, Most(5, 7))
    assert (len(decisions), len(workflows)) == (5, 7)
    assert snapshot(few_rows, 0.0, {}, 0.0)["unstored"] == {"decisions": REQUESTS - 5, "workflows": REQUESTS - 7}
    for live in (all_rows, few_rows):
        assert live.rolling.completed == REQUESTS
        assert live.rolling.context == REQUESTS * 110
        assert live.books.ledger(live.now_s)["workflows"] == REQUESTS


def test_the_ledger_sums_what_the_rows_say() -> None:
    live = served(REQUESTS)
    _, workflows = rows_of(live, take(live), None, Most())
    ledger = live.books.ledger(live.now_s)
    sums = [sum(row["ledger"][k] for row in workflows) for k in range(len(ledger["causes"]))]
    assert ledger["fleet"] == pytest.approx(sums, abs=1e-3)


def test_what_is_taken_outlives_the_world_it_was_taken_from() -> None:
    live = served(3)
    taken = take(live)
    live.world.workflows["id"] = -1
    live.world.calls["uid"] = -1
    decisions, workflows = rows_of(live, taken, None, Most())
    assert [row["call"] for row in decisions] == [1, 2, 3]
    assert [row["id"] for row in workflows] == [1, 2, 3]


def test_a_record_holds_so_many_rows_and_the_next_one_as_many_again(store: Store) -> None:
    live = served(0)
    loop = Loop(live, store, EngineSettings(), "0", lambda: False)
    door = loop.door = Door(live, loop.set_aside)
    for k in range(2):
        for _ in range(MOST_ROWS_PER_S + 50):
            uid, _ = door.enter(Identity(), 100, 1)
            door.ends(uid, COMPLETED, NO_CAUSE, 100, 10, 0)
        loop.tick(0.0)
        loop.record()
        assert live.books.unstored == {"decisions": 50 * (k + 1), "workflows": 50 * (k + 1)}
    shown = readers.latest_snapshot(store)
    assert shown is not None
    assert shown["payload"]["unstored"]["workflows"] == 100
    assert shown["payload"]["fleet"]["completed"] == 2 * (MOST_ROWS_PER_S + 50)
