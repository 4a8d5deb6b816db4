"""The list of workflows: its order, its filters, and what an active workflow does now."""

from typing import Any

import pytest

from control.present import workflows
from control.present.workflows import Filter
from tests.support import details

CAUSES = details.CAUSES


def document(*active: dict[str, Any], **more: Any) -> dict[str, Any]:
    return details.detail(0.0, active=list(active), **more)


def numbers(rows: Any) -> list[int]:
    return [row["id"] for row in rows]


@pytest.mark.parametrize(
    ("text", "digits"),
    [("", ""), (" 12 ", "12"), ("#12", "12"), ("007", "7"), ("0", "0"), ("-1", None), ("1.5", None), ("٣", None)],
)
def test_a_search_is_by_digits(text: str, digits: str | None) -> None:
    assert workflows.searched(text) == digits
    assert workflows.searched("9" * 40) is None


def test_active_ones_are_filtered_and_the_latest_is_first() -> None:
    detail = document(*(details.active(n, late) for n, late in ((201, -3.0), (202, 8.0), (203, 9.0), (1203, 1.0))))
    assert numbers(workflows.active(detail, Filter())) == [203, 202, 1203, 201]
    assert numbers(workflows.active(detail, Filter(late=True))) == [203, 202, 1203]
    assert numbers(workflows.active(detail, Filter(tenant="support"))) == [203, 1203, 201]
    assert numbers(workflows.active(detail, Filter(number="20"))) == [203, 202, 201]
    assert numbers(workflows.active(detail, Filter(number="201"))) == [201]
    assert numbers(workflows.active(detail, Filter(status="running", kind="agent"))) == []
    assert workflows.active(detail, Filter(status="completed")) == []


def test_ended_ones_are_left_out_where_only_active_ones_can_fit() -> None:
    assert workflows.asks_ended(Filter(status="failed"))
    assert not workflows.asks_ended(Filter(status="running"))
    assert not workflows.asks_ended(Filter(stage="candidate"))


def test_a_line_tells_how_late_and_why() -> None:
    ended = [details.workflow(300), details.workflow(301, state="failed", debt_s=0.0, ledger=None, calls=None)]
    rows = workflows.table([details.active(201, 8.4), details.active(202, -15.0)], ended, CAUSES, Filter(), 9).rows
    assert [cell.text for cell in rows[0]] == [
        *("#201", "● running", "text2sql", "support", "candidate", "48.4 s", "40 s", "✕ 8.40 s", "+20.9 s", "3 of 7"),
    ]
    assert rows[1][7].text == "15 s left"
    assert [cell.text for cell in rows[2][4:]] == [
        *("Queue, own tenant +9.70 s", "41.1 s", "38 s", "✕ 3.10 s", "+10.2 s", "5"),
    ]
    assert [cell.text for cell in rows[3][7:]] == ["–", "–", "–"]


def test_a_number_asked_for_comes_before_all_and_a_limit_cuts() -> None:
    going, ended = [details.active(31_000, 99.0)], [details.workflow(31)]
    rows = workflows.table(going, ended, CAUSES, Filter(number="31"), 1).rows
    assert [row[0].workflow for row in rows] == [31]


def test_the_figures_name_the_latest_and_the_one_due_next() -> None:
    detail = document(details.active(201, 8.4), details.active(202, -15.0), details.active(203, -2.0))
    tiles = workflows.summary(detail, {"active_workflows": 33, "slo_attainment": 0.9, "window_s": 300.0})
    assert [tile[1] for tile in tiles] == ["33", "1", "8.40 s", "2 s", "90 %"]
    assert tiles[0][2] == "the 3 latest listed"
    late = workflows.summary(document(details.active(201, 8.4)), {"active_workflows": 33, "window_s": 300.0})
    assert late[1][1] == "1+"  # others of which nothing is listed may be late too
    assert tiles[2][2:] == ("candidate of #201, support", "late")
    empty = workflows.summary(document(), {"active_workflows": 0, "slo_attainment": None, "window_s": 300.0})
    assert [tile[1] for tile in empty] == ["0", "0", "–", "–", "–"]


def test_the_extent_says_what_is_not_shown() -> None:
    detail = document(details.active(201, 8.4))
    assert workflows.extent(60, 1, 1203, detail, {"active_workflows": 1}) == "60 of 1,204 (1 active, 1,203 ended)"
    assert workflows.extent(2, 1, 1, detail, {"active_workflows": 1}) == "2 (1 active, 1 ended)"
    assert "of 324 active ones only the 1 furthest" in workflows.extent(2, 1, 1, detail, {"active_workflows": 324})


def test_what_an_active_one_does_is_told_by_its_waiting_calls_its_conversation_or_its_stage() -> None:
    calls = [details.call(1, workflow=1), details.call(2, workflow=201), details.call(3, workflow=201)]
    detail = document(queues=[{"instance": "l4-0", "total": 14, "calls": calls}])
    assert workflows.doing(detail, details.active(201, 8.4)) == [
        "Call 1002 (correction) waits on l4-0 for 3.40 s, 2 of 14 in its queue.",
        "Call 1003 (unit_test) waits on l4-0 for 4.70 s, 3 of 14 in its queue.",
    ]
    assert "no decoder has room" in workflows.doing(detail, details.active(311, 1.0))[0]
    assert "a tool works" in workflows.doing(detail, details.active(5, 1.0, stage="tool"))[0]
    assert workflows.doing(detail, details.active(5, 1.0)) == ["No call of it is known to wait: candidate runs."]


def test_placements_of_another_run_are_not_its_own() -> None:
    made = [{"sim_s": at} for at in (0.5, 1.0, 42.1, 43.0)]
    assert [row["sim_s"] for row in workflows.own(made, details.workflow(300))] == [1.0, 42.1]


def test_choices_are_those_of_active_and_stored_ones() -> None:
    detail = document(details.active(201, 1.0))
    assert workflows.choices(detail, {"tenant": ["x"]}, "tenant") == ["all", "support", "x"]
    assert workflows.choices(None, {}, "stage") == ["all"]
    assert workflows.choices(None, {}, "status")[:2] == ["all", "running"]


def test_an_empty_list_says_why() -> None:
    assert "none has ended yet" in workflows.nobody(Filter())
    assert "at no stage any more" in workflows.nobody(Filter(stage="x"))
    assert "fits these filters" in workflows.nobody(Filter(late=True))
