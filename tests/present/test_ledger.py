"""The debt ledger in words and bars: sums, signs, and which cause is to blame."""

from typing import Any

import pytest

from control.present import ledger
from tests.support import details


def texts(row: Any) -> list[str]:
    return [cell.text for cell in row]


def test_causes_show_their_total_and_the_mean_of_a_workflow() -> None:
    rows = ledger.by_cause(details.CAUSES, details.ledger()["fleet"], 100).rows
    assert texts(rows[0]) == ["Queue, own tenant", "", "+310 s", "+3.10 s"]
    assert texts(rows[3])[2:] == ["−96.5 s", "−0.965 s"]
    assert texts(rows[-1]) == ["Sum", "", "+381.8 s", "+3.82 s"]


def test_the_widest_bar_fills_its_side_and_time_saved_points_the_other_way() -> None:
    bars = [row[1].bar for row in ledger.by_cause(details.CAUSES, details.ledger()["fleet"], 1).rows[:-1]]
    assert bars[0] == 1.0
    assert bars[3] == pytest.approx(-96.5 / 310.0)


def test_a_window_without_an_ended_workflow_has_no_mean_and_no_bars() -> None:
    rows = ledger.by_cause(details.CAUSES, [0.0] * 8, 0).rows
    assert texts(rows[0])[2:] == ["0 s", "–"]
    assert all(not row[1].bar for row in rows)


def test_the_number_of_ended_workflows_is_reported_or_follows_from_the_throughput() -> None:
    document = details.detail(0.0)
    assert ledger.ended(document, {"throughput_wps": 0.5}) == 150
    document["ledger"]["workflows"] = 7
    assert ledger.ended(document, {"throughput_wps": 0.5}) == 7
    assert ledger.ended(details.detail(0.0), {"throughput_wps": None}) == 0


def test_heat_is_strongest_where_most_time_went() -> None:
    table = ledger.strips(details.CAUSES, details.ledger()["by_tenant"], "Tenant", "")
    heat = [[cell.heat for cell in row[1:-1]] for row in table.rows]
    assert heat[0][0] == 1.0
    assert heat[0][3] is not None
    assert heat[0][3] < 0
    assert texts(table.heads)[1:3] == ["own", "others"]


def test_late_workflows_on_their_way_come_first_and_those_in_time_are_left_out() -> None:
    table = ledger.listed(details.detail(0.0), [details.workflow(300)], 10)
    assert [row[0].workflow for row in table.rows] == [201, 300]
    assert table.rows[0][6].text == "✕ 8.40 s"
    assert table.rows[1][8].text == "Queue, own tenant +9.70 s"


def test_a_workflow_that_ended_since_the_detail_is_listed_once() -> None:
    table = ledger.listed(details.detail(0.0), [details.workflow(201)], 10)
    assert [(row[0].workflow, row[1].text) for row in table.rows] == [(201, "✓ completed")]


def test_no_more_workflows_are_listed_than_asked_for() -> None:
    assert len(ledger.listed(details.detail(0.0), [details.workflow(k) for k in range(9)], 4).rows) == 4


def test_a_refused_workflow_has_no_times_and_no_ledger() -> None:
    row = details.workflow(1, state="refused", cause="too_long", latency_s=None, ledger=None, plan_s=None)
    cells = ledger.listed(details.detail(0.0, active=[]), [row], 1).rows[0]
    assert texts(cells)[1] == "✕ refused"
    assert texts(cells)[4:] == ["–", "38 s", "–", "–", "–"]
    assert ledger.facts(row) == "text2sql of support, ✕ refused (context too long for every instance)"
    assert ledger.check(row) is None


def test_a_workflows_ledger_sums_to_elapsed_less_plan() -> None:
    check = ledger.check(details.workflow(1))
    assert check is not None
    assert check.sum_s == pytest.approx(check.elapsed_s - check.plan_s)
    assert check.text() == "41.1 s elapsed − 30.9 s planned = +10.2 s"


def test_time_without_a_cause_is_told() -> None:
    check = ledger.check(details.workflow(1, latency_s=50.0))
    assert check is not None
    assert check.text().endswith("= +19.1 s; +8.90 s of it has no cause")


def test_an_ended_workflow_is_told_in_one_line() -> None:
    assert ledger.facts(details.workflow(2)) == "text2sql of analytics, ✓ completed, SLO 38 s, late by 3.10 s"
    assert ledger.facts(details.workflow(2, latency_s=30.0)).endswith("within its SLO")


def test_a_workflow_on_its_way_says_what_is_left() -> None:
    assert ledger.progress(details.active(4, -15.0)).endswith("3 of 7 calls done, 15 s left")
    assert ledger.progress(details.active(4, 2.0)).endswith("late by 2 s")


def test_nobody_is_to_blame_for_a_workflow_ahead_of_its_plan() -> None:
    assert ledger.worst(details.CAUSES, [-1.0] * 8) == "–"
    assert ledger.worst(details.CAUSES, None) == "–"


def test_a_late_workflow_says_in_a_sentence_why() -> None:
    row = details.workflow(2)
    told = ledger.why(row)
    assert told.startswith("Late by 3.10 s: ")
    assert told.endswith("most over the plan: Queue, own tenant +9.70 s.")
    calls = [c for c in row["timeline"] if c["critical"] and c["finished_s"] is not None]
    assert any(c["stage"] in told for c in calls)
    assert " of its 41.1 s; " in told


@pytest.mark.parametrize("changed", [{"latency_s": 30.0}, {"timeline": None}, {"ledger": None}, {"latency_s": None}])
def test_nothing_is_said_of_one_in_time_or_of_which_too_little_is_known(changed: dict[str, Any]) -> None:
    assert ledger.why(details.workflow(2, **changed)) == ""
