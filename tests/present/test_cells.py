"""Cells: one unit a column, shares that never lie about nothing and all, instances that are not up."""

import pytest

from control.present import cells, gantt
from tests.support import details


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0384, "0.038 s"),
        (2.345, "2.35 s"),
        (48.44, "48.4 s"),
        (40.0, "40 s"),
        (-0.9651, "−0.965 s"),
        (7440.4, "7,440 s"),
        (-0.0001, "0 s"),
    ],
)
def test_a_column_of_times_has_one_unit(value: float, text: str) -> None:
    assert cells.duration(value).text == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (0.00039, "<0.1 %"), (0.578, "57.8 %"), (0.9999, ">99.9 %"), (1.0, "100 %"), (None, "–")],
)
def test_a_share_reads_as_nothing_or_all_only_where_it_is(value: float | None, text: str) -> None:
    assert cells.percent(value) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"instance": "a b", "state": "down"}, "✕ a b down"),
        ({"instance": "a b", "state": "draining"}, "▲ a b draining"),
        ({"instance": "a b", "state": "up"}, "a b"),
        ({"instance": "a b"}, "a b"),
    ],
)
def test_an_instance_that_is_not_up_says_so_and_leads_to_its_queue(row: dict[str, str], text: str) -> None:
    cell = cells.instance(row)
    assert (cell.text, cell.page) == (text, "queues?instance=a%20b")


def test_calls_of_a_timeline_are_numbered_within_their_workflow() -> None:
    timeline = [call | {"call": 12 * gantt.CALLS_OF_ONE + k} for k, call in enumerate(details.timeline())]
    labels = gantt.figure(timeline, 38.0, 30.0)["layout"]["yaxis"]["ticktext"]
    assert sorted(int(label.split()[-1]) for label in labels) == list(range(len(timeline)))
