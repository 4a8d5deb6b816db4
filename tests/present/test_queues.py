"""What an operator reads off the queues: who is late, who is next, and what a filter leaves."""

import pytest

from control.present import queues
from control.present.queues import ALL, Filter
from tests.support import details

DETAIL = details.detail(0.0)


def shown(wanted: Filter = Filter()) -> list[queues.Queue]:  # noqa: B008
    return queues.queues_of(DETAIL, wanted)


def test_calls_keep_the_order_in_which_they_will_be_served() -> None:
    rows = queues.table(shown()[0], 1).rows
    assert [row[0].text for row in rows[:3]] == ["1", "2", "3"]
    assert [row[1].text for row in rows[:3]] == ["1000", "1001", "1002"]


def test_a_late_call_has_a_sign_and_a_colour_and_one_near_its_deadline_another() -> None:
    laxity = [row[5] for row in queues.table(shown()[0], 1).rows]
    assert (laxity[0].text, laxity[0].kind) == ("✕ −3.40 s", "num late")
    near = queues.table(queues.queues_of({"queues": [one(laxity_s=4.2)]}, Filter())[0], 1).rows[0][5]
    assert (near.text, near.kind) == ("▲ +4.20 s", "num amber")
    assert laxity[2].kind == "num"


def one(**changed: object) -> dict[str, object]:
    return {"instance": "h100-0", "total": 1, "calls": [details.call(1, **changed)]}


def test_a_call_that_no_other_instance_could_take_says_so() -> None:
    first, second = (row[11].text for row in queues.table(shown()[0], 1).rows[:2])
    assert (first, second) == ("none", "a100-0 0.810")


def test_a_policy_without_scores_shows_a_dash() -> None:
    queue = queues.queues_of({"queues": [one(score=None, runner_up_score=None)]}, Filter())[0]
    row = queues.table(queue, 1).rows[0]
    assert (row[10].text, row[11].text) == ("–", "a100-0")


def test_a_preempted_call_is_marked() -> None:
    rows = queues.table(shown()[0], 1).rows
    assert rows[4][1].text == "1004 ↻"
    assert "KV cache" in rows[4][1].hint


@pytest.mark.parametrize(
    ("wanted", "instances", "calls"),
    [
        (Filter(), ["h100-0", "a100-0", "l4-0"], 23),
        (Filter(instance="l4-0"), ["l4-0"], 14),
        (Filter(tenant="support"), ["h100-0", "a100-0", "l4-0"], 11),
        (Filter(stage="candidate", tenant="analytics"), ["h100-0", "a100-0", "l4-0"], 0),
    ],
)
def test_a_filter_leaves_what_it_names(wanted: Filter, instances: list[str], calls: int) -> None:
    left = shown(wanted)
    assert [q.instance for q in left] == instances
    assert sum(len(q.calls) for q in left) == calls


def test_choices_are_open_first_and_then_what_waits() -> None:
    assert queues.choices(DETAIL, "instance") == [ALL, "h100-0", "a100-0", "l4-0"]
    assert queues.choices(DETAIL, "tenant") == [ALL, "analytics", "support"]


def test_the_figures_count_all_that_wait_but_say_how_many_were_looked_at() -> None:
    figures = {label: (value, below, state) for label, value, below, state in queues.summary(shown(), Filter())}
    assert figures["Waiting"][0] == "49"
    assert figures["Late already"] == ("8", "laxity below 0, first 23 looked at", "late")
    assert figures["Least laxity"][2] == "late"


def test_a_filtered_count_names_the_whole() -> None:
    wanted = Filter(tenant="support")
    assert queues.summary(shown(wanted), wanted)[0][1:3] == ("11", "of 49 in all")


def test_an_empty_fleet_of_queues_is_told_in_words() -> None:
    empty = queues.queues_of({"queues": [details.queue("h100-0", 0)]}, Filter())
    assert [value for _, value, _, _ in queues.summary(empty, Filter())] == ["0", "0", "–", "–", "0"]
    assert "has a seat" in queues.nobody(Filter(), 0)
    assert "49 wait in all" in queues.nobody(Filter(tenant="x"), 49)


def test_the_longest_queue_fills_its_bar_and_the_others_are_in_proportion() -> None:
    lines = queues.overview(shown(), ["analytics", "support"])
    widths = {name.text: sum(share for _, share in parts) for name, parts, _ in lines}
    assert widths == {"h100-0": pytest.approx(9 / 40), "a100-0": 0.0, "l4-0": pytest.approx(1.0)}


def test_what_does_not_fit_is_counted() -> None:
    queue = shown()[2]
    assert queues.extent(queue, 14, Filter()) == "first 14 of 40 waiting"
    assert queues.extent(queue, 14, Filter(tenant="support")) == "14 matching"
    assert queues.extent(shown()[0], 9, Filter()) == "9 waiting"
    assert len(queues.table(queue, 16).rows) == 5
    assert len(queues.table(queue, 200).rows) == 1


def test_a_placement_names_the_score_and_the_runner_up() -> None:
    row = details.call(1) | {"instance": "h100-0", "score": 0.5, "runner_up": "l4-0", "runner_up_score": 0.75}
    assert [cell.text for cell in queues.placements([row]).rows[0]][-2:] == ["0.500", "l4-0 0.750"]


def test_the_tenants_are_those_that_wait_are_on_their_way_or_ended_lately() -> None:
    detail = {
        "queues": [one(tenant="c")],
        "active": [details.active(1, 0.0, tenant="b")],
        "ledger": {"by_tenant": {"a": [], "c": []}},
    }
    assert queues.tenants(detail) == ["a", "b", "c"]
