"""The live payload holds what the charts need, in few bytes."""

import orjson
import pytest

from control.present.live import (
    MAX_ROWS,
    Limits,
    Row,
    answer,
    begins_anew,
    columns_of,
    fleet_key,
    present_run,
    row_of_snapshot,
    rows_of_samples,
    window_rows,
    with_gaps,
)
from control.present.marks import Mark
from tests.support.snapshots import instance, samples_of, snapshot

START = 1_800_000_000.0


def row(seq: int, at: float, sim_s: float | None = None) -> Row:
    """A row `at` s after START."""
    return row_of_snapshot(snapshot(seq, START + at, sim_s=seq * 10.0 if sim_s is None else sim_s))


def test_columns_are_by_instance_then_row_with_four_digits() -> None:
    rows = [row_of_snapshot(snapshot(seq, START + seq)) for seq in (1, 2)]
    columns = columns_of(rows, ["l4-0", "h100-0"])
    assert columns["at"] == [START + 1, START + 2]
    assert columns["fleet"]["p95_s"] == [12.35, 12.35]
    assert columns["instances"]["kv_used_fraction"] == [[0.4568, 0.4568], [0.4568, 0.4568]]
    assert columns["instances"]["power_w"][0] == [36.89, 36.89]


def test_an_instance_that_was_not_there_yet_is_a_hole() -> None:
    columns = columns_of([row_of_snapshot(snapshot())], ["h100-0", "new-0"])
    assert columns["instances"]["queued"] == [[2], [None]]


def test_samples_of_one_second_make_the_same_row_as_its_snapshot() -> None:
    payload = snapshot(7, START)
    rows = [{"at": START, "sim_s": payload["sim_s"], **row} for row in samples_of(payload)]
    names = {name for row in rows for name in row}
    columns = {name: [row.get(name) for row in rows] for name in names}
    assert rows_of_samples(columns) == [row_of_snapshot(payload)._replace(seq=0)]


def test_a_refresh_holds_only_newer_rows() -> None:
    rows = [row_of_snapshot(snapshot(seq, START + seq)) for seq in range(1, 11)]
    assert [r.seq for r in window_rows(rows, 8, 0.0)] == [9, 10]


@pytest.mark.parametrize("seconds", [300, 900, 1800])
def test_a_long_window_is_thinned_and_keeps_its_newest_row(seconds: int) -> None:
    rows = [row_of_snapshot(snapshot(seq, START + seq)) for seq in range(1, 1801)]
    kept = window_rows(rows, 0, START + 1800 - seconds)
    assert len(kept) <= MAX_ROWS
    assert kept[-1].seq == 1800
    assert kept[0].at >= START + 1800 - seconds


def test_a_time_without_data_breaks_the_lines() -> None:
    seen = with_gaps([row(1, 0), row(2, 1), row(3, 60)])
    assert [round(r.at - START, 1) for r in seen] == [0, 1, 1.1, 59.9, 60]
    assert [set(r.fleet) for r in seen[2:4]] == [{None}, {None}]
    assert [r.instances for r in seen[2:4]] == [{}, {}]


def test_rows_a_few_steps_apart_are_no_hole() -> None:
    assert len(with_gaps([row(1, 0), row(2, 4)])) == 2
    assert len(with_gaps([row(1, 0), row(2, 15)], stride=5)) == 2
    assert len(with_gaps([row(1, 0), row(2, 16)], stride=5)) == 4


def test_a_refresh_after_an_outage_brings_the_hole_with_it() -> None:
    rows = [row(1, 0), row(2, 1), row(3, 17), row(4, 18)]
    assert [round(r.at - START, 1) for r in window_rows(rows, 2, 0.0)] == [1.1, 16.9, 17, 18]
    assert [r.seq for r in window_rows(rows, 3, 0.0)] == [4]
    assert window_rows(rows, 4, 0.0) == []


def test_the_present_run_begins_where_simulated_time_falls_back() -> None:
    rows = [row(1, 0, 400.0), row(2, 1, 410.0), row(3, 2, 0.0), row(4, 3, 10.0)]
    assert present_run(rows) == (rows[2:], START + 2)
    assert present_run(rows[2:]) == (rows[2:], 0.0)
    assert present_run([]) == ([], 0.0)


@pytest.mark.parametrize(
    ("before_s", "after_s", "anew"),
    [
        (400.0, 410.0, False),
        (400.0, 400.0, False),
        (400.0, 396.0, False),  # an engine of real servers that was killed
        (400.0, 389.0, True),
        (9.0, 0.0, True),
        (0.0, 0.0, False),
    ],
)
def test_a_restart_goes_on_and_another_run_does_not(before_s: float, after_s: float, anew: bool) -> None:
    assert begins_anew(row(1, 0, before_s), row(2, 1, after_s)) is anew


@pytest.mark.parametrize(("count", "most"), [(8, 1100), (64, 10_000)])
def test_a_refresh_is_small(count: int, most: int) -> None:
    payload = snapshot(count=count)
    body = answer(payload, [row_of_snapshot(payload)], [], False, Limits())
    assert len(orjson.dumps(body)) < most
    assert "static" not in body


def test_a_full_answer_says_what_the_instances_are_and_where_the_limits_lie() -> None:
    payload = snapshot()
    body = answer(payload, [row_of_snapshot(payload)], [Mark(3, START, "alpha", "α 0.20")], True, Limits())
    assert body["static"]["instances"]["gpu"] == ["H100", "A100", "L4"]
    assert body["static"]["limits"]["kv_red"] == 0.95
    assert body["marks"] == [[3, START, "alpha", "α 0.20"]]
    assert body["now"]["states"] == ["up", "up", "up"]


def test_another_fleet_has_another_key_and_another_load_has_not() -> None:
    one = snapshot()
    assert fleet_key(one) == fleet_key(snapshot(2, START + 1, alpha=0.9))
    assert fleet_key(one) != fleet_key(snapshot(instances=[instance("h100-0", "H100", 700.0)]))


def test_the_same_fleet_in_another_run_has_another_key() -> None:
    assert fleet_key(snapshot()) != fleet_key(snapshot(), START)
