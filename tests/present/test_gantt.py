"""The timeline of a workflow: every second of a call is drawn once, in the order it passed."""

from typing import Any

import pytest

from control.present import gantt
from tests.support import details


def bars(figure: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trace for trace in figure["data"] if trace["name"] == name)


def drawn(timeline: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return gantt.figure(details.timeline() if timeline is None else timeline, 38.0, 30.0)


def test_phases_of_a_call_follow_each_other_without_gap() -> None:
    figure = drawn()
    queue, prefill, decode = (bars(figure, name) for name in ("queue", "prefill", "decode"))
    assert queue["base"][0] + queue["x"][0] == pytest.approx(prefill["base"][0])
    assert prefill["base"][0] + prefill["x"][0] == pytest.approx(decode["base"][0])


def test_the_last_phase_ends_when_the_call_did() -> None:
    timeline = details.timeline()
    figure = drawn(timeline)
    ends = [b + w for b, w in zip(bars(figure, "decode")["base"], bars(figure, "decode")["x"], strict=True)]
    assert ends == pytest.approx([call["finished_s"] for call in gantt.ordered(timeline)])


def test_lost_and_repeated_time_is_hatched_not_only_coloured() -> None:
    figure = drawn()
    assert bars(figure, "preemption")["marker"]["pattern"]["shape"]
    assert bars(figure, "failure")["marker"]["pattern"]["shape"]


def test_a_phase_that_took_no_time_is_not_in_the_legend() -> None:
    names = {trace["name"] for trace in drawn([details.step(1, 0, 0.0, (1.0, 0.5, 2.0))])["data"]}
    assert names == {"queue", "prefill", "decode", "budget"}
    assert gantt.legend([details.step(1, 0, 0.0, (1.0, 0.5, 2.0))]) == ["queue", "prefill", "decode", "budget"]
    assert gantt.legend(details.timeline())[0] == "failure"


def test_critical_calls_are_marked_and_counted() -> None:
    labels = drawn()["layout"]["yaxis"]["ticktext"]
    assert [label.startswith("◆") for label in labels] == [True, False, True, False, True]
    assert "◆ 3 that the workflow waited for" in gantt.caption(details.timeline())


def test_a_budget_ends_that_long_after_the_call_was_ready() -> None:
    assert bars(drawn(), "budget")["x"] == [9.0, 17.8, 17.8, 17.8, 35.0]


def test_tool_time_comes_after_the_call() -> None:
    tool = bars(drawn(), "tool")
    assert (tool["base"][0], tool["x"][0]) == (6.8, 2.0)


def test_a_call_that_never_became_ready_keeps_its_row() -> None:
    never = dict.fromkeys(("ready_s", "started_s", "first_token_s", "finished_s"))
    lost = details.step(9, 3, 0.0, (0.0, 0.0, 0.0), instance=None, state="failed", budget_s=0.0) | never
    figure = drawn([*details.timeline(), lost])
    assert figure["layout"]["yaxis"]["ticktext"][-1] == "◆ unit_test (failed) 9"
    assert len(bars(figure, "budget")["x"]) == 5


def test_slo_and_plan_are_labelled_on_different_sides() -> None:
    sides = {a["text"]: a["xanchor"] for a in drawn()["layout"]["annotations"]}
    assert sides == {"SLO 38 s": "left", "plan 30 s": "right"}


def test_a_very_long_workflow_keeps_the_calls_it_waited_for() -> None:
    timeline = [details.step(k, k, float(k), (0.1, 0.1, 0.5), critical=k >= 120) for k in range(150)]
    kept = gantt.ordered(timeline)
    assert len(kept) == gantt.MOST_CALLS
    assert {call["call"] for call in kept} >= set(range(120, 150))
    assert "70 more calls are not drawn" in gantt.caption(timeline)
