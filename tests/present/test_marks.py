"""The marks on the charts say what was changed, once each."""

from typing import Any

import pytest

from control.present.marks import marks_of


def event(id: int, at: float, kind: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "at": at, "kind": kind, "target": None, "text": "", "old": None, "new": None} | more


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (event(1, 0, "alpha", old=0.1, new=0.2), "α 0.20"),
        (event(1, 0, "alpha", old={"alpha": 0.1}, new={"alpha": 0.35}), "α 0.35"),
        (event(1, 0, "policy", new="edf"), "edf"),
        (event(1, 0, "speed", new=10.0), "speed ×10"),
        (event(1, 0, "load_scale", new=1.5), "load ×1.5"),
        (event(1, 0, "drain", target="l4-0"), "drain l4-0"),
        (event(1, 0, "engine_recovered", target="x"), "engine restart"),
        (event(1, 0, "pause"), "pause"),
        (event(1, 0, "tuning_mode", new={"mode": "auto"}), "tuning auto"),
        (event(1, 0, "release_alpha"), "α released"),
        (event(1, 0, "tuning", new=0.3), "suggests α 0.30"),
        (event(1, 0, "tuning"), "tuning"),
    ],
)
def test_a_mark_names_the_change(row: dict[str, Any], label: str) -> None:
    assert [m.label for m in marks_of([row])] == [label]


def test_equal_changes_within_a_second_share_one_mark() -> None:
    rows = [event(3, 10.6, "drain", target="c"), event(2, 10.3, "drain", target="b")]
    rows += [event(1, 10.0, "drain", target="a"), event(4, 12.0, "drain", target="d")]
    assert [(m.id, m.at, m.label) for m in marks_of(rows)] == [(1, 10.0, "drain ×3"), (4, 12.0, "drain d")]


def test_events_nobody_asked_for_draw_no_line() -> None:
    assert marks_of([event(1, 0, "retention")]) == []


def test_a_tuning_run_that_changes_nothing_draws_no_line() -> None:
    assert marks_of([event(1, 0, "tuning", old=0.3, new=0.3)]) == []
    (mark,) = marks_of([event(1, 0, "tuning", old=0.5, new=0.3)])
    assert mark.label == "suggests α 0.30"
