"""What placements were decided on reaches the store, of some where there are many, however rows are moved."""

from typing import Any

import numpy as np
import pytest

from control.config import EngineSettings
from control.engine.door import Door
from control.engine.loop import Loop
from control.engine.receipts import MOST_INSTANCES, Allowance, age_s, best_first, runner_up, take_receipts
from control.engine.record import drain_journal, take
from control.engine.spare import start_gateway
from control.engine.state import Live, move, take_in, take_windows
from control.engine.tickets import Identity
from control.metrics.stages import UNDER_WAY
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import DRAINING
from storage import readers
from storage.open import Store
from tests.support.live import Driven

KEYS = {"instance", "t_comp_s", "t_queue_s", "score", "why", "age_s"}


def kept(decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The placements with a receipt."""
    return [row for row in decisions if row["candidates"] is not None]


def next_seconds(demo: Driven, seconds: float = 5.0) -> list[dict[str, Any]]:
    """What is decided in the next seconds of the demo."""
    demo.decisions.clear()
    demo.run(demo.live.now_s + seconds)
    return demo.decisions


def test_a_row_lists_the_instances_compared_the_chosen_and_the_runner_up_first(demo: Driven) -> None:
    rows = kept(next_seconds(demo))
    assert rows
    for row in rows:
        first, second = row["candidates"][:2]
        assert all(candidate.keys() == KEYS for candidate in row["candidates"])
        assert (first["instance"], second["instance"]) == (row["instance"], row["runner_up"])
        assert first["score"] == pytest.approx(row["score"], rel=1e-5)
        assert second["score"] == pytest.approx(row["runner_up_score"], rel=1e-5)
        assert first["t_queue_s"] == pytest.approx(row["t_queue_s"], rel=1e-5)
        scores = [candidate["score"] for candidate in row["candidates"]]
        assert scores == sorted(scores, reverse=True)
        assert (row["filtered"], {candidate["age_s"] for candidate in row["candidates"]}) == ({}, {0.0})


def test_instances_that_drain_are_counted_and_named(demo: Driven) -> None:
    names = [spec.name for spec in demo.live.fleet.instances]
    demo.live.world.instances["state"][:2] = DRAINING
    rows = kept(next_seconds(demo))
    assert rows
    for row in rows:
        out = {candidate["instance"]: candidate["why"] for candidate in row["candidates"] if candidate["why"]}
        assert out == {names[0]: "draining", names[1]: "draining"}
        assert row["filtered"] == {"draining": 2}


def receipts_by_uid(live: Live) -> dict[int, bytes]:
    """What the world still holds of the placements of its open calls."""
    open_calls = live.world.calls[np.isin(live.world.calls["state"], UNDER_WAY)]
    found = take_receipts(live, open_calls["receipt"])
    return {
        int(call["uid"]): found.table[row].tobytes()
        for call, row in zip(open_calls, found.rows.tolist(), strict=True)
        if row >= 0
    }


def test_receipts_outlive_a_repack_and_those_before_a_restart_are_gone(demo: Driven) -> None:
    before, rows = receipts_by_uid(demo.live), len(demo.live.world.calls)
    demo.live.next_window += 1
    take_in(demo.live, demo.live.source.window(demo.live.next_window, 1.0))
    assert len(demo.live.world.calls) != rows
    assert before
    assert receipts_by_uid(demo.live) == before
    demo.stop_and_go_on()
    assert receipts_by_uid(demo.live) == {}
    assert kept(next_seconds(demo))


def demo_step(demo: Driven) -> None:
    """A tenth of a second more, the journal not drained."""
    move(demo.live, demo.live.now_s + 0.1)


def test_so_many_are_kept_a_second_and_those_lie_at_even_distances(demo: Driven) -> None:
    now_s = [0.0]
    allowance = Allowance(clock=lambda: now_s[0])
    assert allowance.spend(70) == 70
    assert allowance.spend(70) == 30
    now_s[0] = 0.1
    assert allowance.spend(70) == 10
    now_s[0] = 60.0
    assert allowance.spend(500) == 100
    now_s[0] = 60.0625
    live = demo.live
    take_windows(live, live.now_s + 10.0)
    while live.world.clock[0]["n_journal"] < 200:
        demo_step(demo)
    taken = take(live, allowance)
    rows = taken.receipts.rows
    assert (rows >= 0).sum() == 6
    with_receipt = [k for k in range(len(rows)) if rows[k] >= 0]
    assert with_receipt[-1] - with_receipt[0] > len(rows) / 2


def test_a_large_fleet_lists_the_best() -> None:
    many = Fleet("many", tuple(InstanceSpec(f"s{k}", "H100", "Llama-3.1-8B", url=f"http://s{k}") for k in range(40)))
    live = start_gateway(many, "hexgen", 0.5)
    live.observed[3] = {"metrics_age_s": 0.7}
    door = Door(live, lambda: None)
    live.world.instances["state"][20:] = DRAINING
    door.enter(Identity(), 100, 1)
    (row,), _ = drain_journal(live)
    assert len(row["candidates"]) == MOST_INSTANCES
    assert row["filtered"] == {"draining": 20}
    assert all(candidate["why"] is None for candidate in row["candidates"])
    assert (age_s(live, 3), age_s(live, 4), age_s(live, 39)) == (0.7, None, None)


def test_a_receipt_is_stored_with_its_placement(demo: Driven, store: Store) -> None:
    loop = Loop(demo.live, store, EngineSettings(), "0", lambda: False)
    loop.tick(2.0)
    loop.record()
    newest = readers.decisions(store, 50)
    assert newest
    assert "candidates" not in newest[0]
    shown = [readers.decision(store, row["id"]) for row in newest]
    assert any(row is not None and row["candidates"] for row in shown)
    assert readers.decision(store, 10**9) is None


def test_where_kv_was_sent_on_the_receipt_knows_the_runner_up() -> None:
    candidates = [{"instance": "a", "why": None}, {"instance": "b", "why": None}, {"instance": "c", "why": "down"}]
    row = {"instance": "a", "runner_up": None, "candidates": candidates}
    assert runner_up(row) == "b"
    assert runner_up(row | {"candidates": None}) is None
    assert runner_up(row | {"runner_up": "z"}) == "z"


def test_equal_scores_go_by_less_queued_work(demo: Driven) -> None:
    table = demo.live.world.receipts[:1, :3].copy()[0]
    table["score"], table["t_queue_s"] = [1.0, 2.0, 2.0], [0.0, 5.0, 4.0]
    assert best_first(table) == [2, 1, 0]
