"""Old rows leave, but never before their average is kept; and it may run at any time, any number of times."""

import math
from typing import Any

import numpy as np
import pytest

from storage import commands, readers, retention
from storage.journal import Batch, Journal
from storage.open import Store
from storage.tables import MEASURES, SAMPLE

START = 1_800_000_000.0  # a multiple of 60


def sample(second: int, scope: str) -> dict[str, Any]:
    """Every measure is another function of time, so that a swapped column shows."""
    values = {name: float(second % 7 + 10 * i) for i, name in enumerate(MEASURES)}
    return {"at": START + second, "sim_s": 2.0 * second, "scope": scope, **values}


def record(journal: Journal, seconds: range, scopes: tuple[str, ...] = ("fleet", "h100-0")) -> None:
    rows = [sample(second, scope) for second in seconds for scope in scopes]
    for i in range(0, len(rows), 1000):
        journal.commit(Batch(START, 0.0, samples=rows[i : i + 1000]))


def settle(store: Store, now: float) -> int:
    """Calls until nothing is left to do; returns how many did something."""
    for calls in range(1000):
        if retention.roll_up(store, now) == 0:
            return calls
    raise AssertionError("roll_up never came to rest")


def naive_mean(seconds: range, name: str) -> float:
    values = [sample(second, "fleet")[name] for second in seconds]
    return max(values) if name == "p95_s" else sum(values) / len(values)


def test_a_coarse_row_is_the_mean_and_the_worst_p95_of_its_seconds(store: Store, journal: Journal) -> None:
    record(journal, range(125))
    retention.roll_up(store, START + 125 + retention.GRACE_S)
    for step, starts in ((10, range(0, 120, 10)), (60, (0, 60))):
        columns = readers.samples(store, "fleet", 0, step)
        assert columns["at"].tolist() == [START + start for start in starts]
        assert columns["sim_s"].tolist() == [2.0 * (start + step - 1) for start in starts]
        for name in MEASURES:
            expected = [naive_mean(range(start, start + step), name) for start in starts if step == 10]
            expected = expected or [naive_of_tens(range(start, start + step, 10), name) for start in starts]
            np.testing.assert_allclose(columns[name], expected, err_msg=name)
    assert set(readers.samples(store, None, 0, 60)["scope"]) == {"fleet", "h100-0"}


def naive_of_tens(starts: range, name: str) -> float:
    tens = [naive_mean(range(start, start + 10), name) for start in starts]
    return max(tens) if name == "p95_s" else sum(tens) / len(tens)


def test_an_interval_still_being_written_is_left_alone(store: Store, journal: Journal) -> None:
    record(journal, range(20))
    retention.roll_up(store, START + 20)  # the last second's commit may still be on its way
    assert readers.samples(store, "fleet", 0, 10)["at"].tolist() == [START]
    retention.roll_up(store, START + 20 + retention.GRACE_S)
    assert readers.samples(store, "fleet", 0, 10)["at"].tolist() == [START, START + 10]


def test_nulls_do_not_count_and_all_nulls_stay_null(store: Store, journal: Journal) -> None:
    rows = [{"at": START + i, "scope": "fleet", "alpha": None, "queued": None if i else 4.0} for i in range(10)]
    journal.commit(Batch(START, 0.0, samples=rows))
    retention.roll_up(store, START + 60)
    columns = readers.samples(store, "fleet", 0, 10)
    assert columns["queued"].tolist() == [4.0]
    assert math.isnan(columns["alpha"][0])


def test_running_it_again_changes_nothing(store: Store, journal: Journal) -> None:
    record(journal, range(300))
    now = START + 400
    assert retention.roll_up(store, now) > 0
    before = {step: readers.samples(store, None, 0, step)["queued"].tolist() for step in (1, 10, 60)}
    assert retention.roll_up(store, now) == 0
    assert before == {step: readers.samples(store, None, 0, step)["queued"].tolist() for step in (1, 10, 60)}


def test_seconds_go_after_half_an_hour_and_tens_after_a_day(store: Store, journal: Journal) -> None:
    record(journal, range(0, 3600, 5), scopes=("fleet",))
    now = START + 3600
    settle(store, now)
    assert readers.samples(store, None, 0, 1)["at"].min() == now - 1800
    assert len(readers.samples(store, None, 0, 10)["at"]) in (359, 360)
    settle(store, START + 86_400 + 1800)
    assert readers.samples(store, None, 0, 10)["at"].min() == START + 1800
    assert len(readers.samples(store, None, 0, 60)["at"]) == 60
    settle(store, START + 31 * 86_400)
    assert [len(readers.samples(store, None, 0, step)["at"]) for step in (1, 10, 60)] == [0, 0, 0]


@pytest.mark.parametrize("down_s", [7200, 40 * 86_400])
def test_after_down_time_it_catches_up_in_bounded_steps(
    store: Store, journal: Journal, down_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MAX_INTERVALS", 7)
    record(journal, range(1200), scopes=("fleet",))
    record(journal, range(down_s, down_s + 30), scopes=("fleet",))
    written = retention.roll_up(store, START + down_s + 70)
    assert written <= 7 + 1 + 70 + 7 + 1  # tens, a minute, and at most as many deleted
    assert settle(store, START + down_s + 70) > 10
    kept = readers.samples(store, None, 0, 60)["at"].tolist()
    old = [] if down_s > 30 * 86_400 else [START + 60 * i for i in range(20)]
    assert kept == [*old, START + down_s]


def test_a_clock_that_ran_ahead_does_not_stop_the_roll_up(store: Store, journal: Journal) -> None:
    record(journal, range(86_400, 86_420), scopes=("fleet",))
    retention.roll_up(store, START + 86_500)
    record(journal, range(20), scopes=("fleet",))
    retention.roll_up(store, START + 60)
    assert readers.samples(store, None, 0, 10)["at"].tolist()[:2] == [START, START + 10]


def test_only_the_newest_snapshots_stay_and_numbers_go_on(store: Store, journal: Journal) -> None:
    for tick in range(retention.SNAPSHOTS_KEPT + 20):
        journal.commit(Batch(START + tick, 0.0, snapshot={"tick": tick}))
    assert retention.roll_up(store, START) == 20
    numbers = [seq for seq, _ in readers.snapshots_since(store, 0, limit=2000)]
    assert numbers == list(range(21, retention.SNAPSHOTS_KEPT + 21))


def test_decisions_workflows_and_events_leave_at_their_age_and_commands_stay(store: Store, journal: Journal) -> None:
    names = {"stage": "s", "instance": "i", "policy": "p"}
    workflow = {"kind": "k", "tenant": "t", "state": "completed", "arrival_sim_s": 0.0, "finished_sim_s": 1.0}
    number = commands.submit(store, "pause", {}, "cli")
    for i, at in enumerate((START, START + 7200)):
        batch = Batch(at, 0.0, decisions=[{"call": i, "workflow": i, **names}], workflows=[{"id": i, **workflow}])
        batch.events.append({"kind": "pause", "text": "paused", "command_id": number})
        journal.commit(batch)
    retention.roll_up(store, START + 86_400 + 60)
    assert [row["call"] for row in readers.decisions(store, 9)] == [1]
    assert [row["id"] for row in readers.workflows(store, 9)] == [1]
    assert len(readers.events(store, 0, 9)) == 2
    retention.roll_up(store, START + 31 * 86_400)
    assert readers.events(store, 0, 9) == []
    assert len(commands.recent(store, 9)) == 1


def test_a_large_leftover_is_deleted_in_pieces(store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "DELETED_AT_ONCE", 10)
    monkeypatch.setattr(retention, "MAX_DELETED", 30)
    with store.writing() as connection:
        rows = [{"resolution_s": 60, "at": START + i, "sim_s": 0.0, "scope": "fleet"} for i in range(45)]
        connection.execute(SAMPLE.insert(), rows)
    later = START + 40 * 86_400
    assert [retention.roll_up(store, later) for _ in range(3)] == [30, 15, 0]


def test_receipts_of_all_but_the_newest_placements_are_forgotten(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "RECEIPTS_KEPT", 3)
    names = {"stage": "s", "instance": "i", "policy": "p", "workflow": 1, "candidates": [], "filtered": {"down": 1}}
    journal.commit(Batch(START, 0.0, decisions=[{"call": call, **names} for call in range(5)]))
    assert retention.roll_up(store, START + 60) == 2
    found = [readers.decision(store, number) for number in range(1, 6)]
    assert [row is not None and row["candidates"] for row in found] == [None, None, [], [], []]
    assert [row is not None and row["filtered"] for row in found][:3] == [None, None, {"down": 1}]
    assert retention.roll_up(store, START + 60) == 0
