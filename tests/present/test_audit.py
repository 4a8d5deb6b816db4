"""The audit's lines: merged by time, each told once, with values in words."""

from typing import Any

import pytest

from control.present import audit
from control.present.audit import Filter
from control.present.changes import Undo, undo_of
from tests.present.test_changes import command, event

NONE = Undo({}, frozenset())


def logged(id: int, at: float, kind: str, command_id: int | None = None, **more: Any) -> dict[str, Any]:
    return event(id, at, kind, command_id) | {"sim_s": 5.0, "old": None, "new": None} | more


def asked(id: int, at: float, **more: Any) -> dict[str, Any]:
    return command(id, at) | {"sim_s": 4.0} | more


def test_commands_and_events_are_merged_by_time_and_cut() -> None:
    rows = [asked(2, 30.0, kind="pause", payload={}), asked(1, 10.0)]
    lines = audit.entries(rows, {}, [logged(7, 20.0, "engine_started")], NONE, 9)
    assert [line.what for line in lines] == ["#2 pause", "engine started", "#1 drain l4-0"]
    assert [line.change.author for line in lines] == ["cli", "engine", "cli"]
    assert len(audit.entries(rows, {}, [], NONE, 1)) == 1


def test_the_values_are_those_the_engine_recorded_else_those_asked_for() -> None:
    row = asked(1, 10.0, kind="alpha", payload={"alpha": 0.5}, expected=0.9)
    (with_event,) = audit.entries([row], {1: logged(3, 10.1, "alpha", 1, old=0.35, new=0.5)}, [], NONE, 9)
    (without,) = audit.entries([row], {}, [], NONE, 9)
    assert (with_event.values, without.values) == ("0.35 → 0.50", "0.90 → 0.50")


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        ("speed", 1, 10.0, "×1 → ×10"),
        ("policy", "hexgen", "edf", "hexgen → edf"),
        ("step", None, 10.0, "10 s"),
        ("pause", False, True, "–"),
        ("tuning", None, 0.4, "α 0.40 found"),
        ("power_cap", {"caps": {"a": None}}, {"caps": {"a": 200.0}}, "no cap → 200 W per GPU"),
        (
            "power_cap",
            {"caps": {"a": None, "b": 150.0}},
            {"caps": {"a": 200.0, "b": 200.0}},
            "2 different caps on 2 instances → 200 W per GPU on 2 instances",
        ),
        (
            "kv_retention",
            {"retention": {"need": "observed", "idle_ttl_s": None}},
            {"retention": {"need": "observed", "idle_ttl_s": 60.0}},
            "observed need, idle ones kept for good → observed need, idle ones kept 60 s",
        ),
    ],
)
def test_values_are_in_words(kind: str, old: object, new: object, words: str) -> None:
    (line,) = audit.entries([], {}, [logged(1, 1.0, kind, old=old, new=new)], NONE, 9)
    assert line.values == words


@pytest.mark.parametrize(
    ("kind", "payload", "what"),
    [
        ("cancel", {"workflow": 12}, "#1 give up workflow #12"),
        ("power_cap", {"tier": "decode", "cap_w": 200.0}, "#1 power cap of decode"),
        ("release_alpha", {}, "#1 release α"),
        ("pause", '{"now": NaN}', "#1 pause"),
    ],
)
def test_a_command_says_what_it_is_about(kind: str, payload: Any, what: str) -> None:
    (line,) = audit.entries([asked(1, 10.0, kind=kind, payload=payload)], {}, [], NONE, 9)
    assert line.what == what


def test_only_the_newest_change_of_a_thing_can_be_undone() -> None:
    rows = [
        asked(5, 50.0, kind="undrain"),
        asked(4, 40.0, payload={"instance": "h100-0"}),
        asked(3, 30.0, kind="alpha", payload={"alpha": 0.5}, expected=0.2),
        asked(2, 20.0, kind="kill", payload={"instance": "a100-0"}, state="refused"),
        asked(1, 10.0),
    ]
    assert sorted(undo_of(rows, []).orders) == [3, 4, 5]
    tuned = [logged(9, 35.0, "alpha", old=0.5, new=0.6)]
    assert sorted(undo_of(rows, tuned).orders) == [4, 5]


def test_caps_of_other_instances_do_not_take_an_undo_away() -> None:
    caps = [asked(n, 10.0 * n, kind="power_cap", payload={"tier": f"a40-{n}", "cap_w": 200.0}) for n in (2, 1)]
    told = [logged(n, 10.0 * n, "power_cap", n, old={"caps": {f"a40-{n}": None}}, new={"caps": {f"a40-{n}": 200.0}})
            for n in (1, 2)]  # fmt: skip
    assert sorted(undo_of(caps, told).orders) == [1, 2]
    again = logged(3, 30.0, "power_cap", 3, old={"caps": {"a40-1": 200.0}}, new={"caps": {"a40-1": 250.0}})
    third = asked(3, 30.0, kind="power_cap", payload={"tier": "a40-1", "cap_w": 250.0})
    assert sorted(undo_of([third, *caps], [*told, again]).orders) == [2, 3]


def test_what_was_changed_before_a_fresh_start_no_longer_holds() -> None:
    rows = [asked(2, 30.0, payload={"instance": "h100-0"}), asked(1, 10.0)]
    assert sorted(undo_of(rows, [logged(5, 20.0, "engine_fresh")]).orders) == [2]
    assert sorted(undo_of(rows, [logged(5, 20.0, "engine_recovered")]).orders) == [1, 2]


def test_an_undo_is_not_undone() -> None:
    undo = undo_of([asked(2, 20.0, kind="undrain", undo_of=1), asked(1, 10.0)], [])
    assert undo.orders == {}
    assert undo.done == {1}


def test_a_line_that_can_be_undone_stands_alone() -> None:
    rows = [asked(n, 10.0 * n, payload={"instance": f"l4-{min(n, 2)}"}) for n in (4, 3, 2, 1)]
    lines = audit.entries(rows, {}, [], undo_of(rows, []), 9)
    assert [[entry.change.command_id for entry in run] for run in audit.segments(lines)] == [[4], [3, 2], [1]]


def test_filters_say_what_to_search() -> None:
    assert audit.asks_commands(Filter())
    assert audit.asks_events(Filter())
    assert not audit.asks_commands(Filter(author="engine"))
    assert not audit.asks_events(Filter(author="cli"))
    assert not audit.asks_events(Filter(outcome="applied"))
    assert not audit.asks_commands(Filter(outcome=audit.EVENT))
    assert audit.choices({"author": ["cli"], "kind": ["alpha"]}, "author") == ["all", "engine", "cli"]


def test_a_line_has_the_viewers_time_short_and_in_full() -> None:
    (line,) = audit.entries([asked(1, 10.0, state="refused", reason="gone")], {}, [], NONE, 9)
    cells = audit.row(line, lambda at: (f"at {at:g}", "in full"))
    assert (cells[0].text, cells[0].hint) == ("at 10", "in full")
    assert (cells[5].text, cells[5].kind) == ("✕ refused: gone", "late")
    assert len(cells) == len(audit.HEADS)


def test_the_extent_says_what_is_not_shown() -> None:
    assert audit.extent(50, 1204) == "The newest 50 of 1,204 entries"
    assert audit.extent(3, 3) == "3 entries"
    assert audit.extent(1, 1) == "1 entry"


@pytest.mark.parametrize(
    ("kind", "payload", "what"),
    [
        ("whatif", {"spec": {"minutes": 5, "settings": [{"name": "x", "alpha": 0.2}]}}, "what if: x, next 5 min"),
        ("apply_whatif", {"run": 3, "setting": 2, "guard_minutes": 5}, "apply setting 2 of fork #3, guarded 5 min"),
        ("undo_whatif", {"run": 3}, "take back what was applied of fork #3"),
        ("end_guard", {}, "stop watching"),
        ("shadows", {"policies": ["edf", "sjf"]}, "shadow edf, sjf"),
        ("regret", {"decision": 42}, "replay placement 42"),
    ],
)
def test_deeds_are_told_in_words_and_set_no_value(kind: str, payload: dict[str, Any], what: str) -> None:
    (line,) = audit.entries([asked(1, 10.0, kind=kind, payload=payload)], {}, [], NONE, 9)
    assert (line.what.removeprefix("#1 ").startswith(what), line.values) == (True, "–")


def test_an_applied_setting_is_named_also_once_it_was_undone() -> None:
    payload = {"run": 3, "setting": 2, "guard_minutes": 0}
    applied = asked(1, 10.0, kind="apply_whatif", payload=payload, reason="α 0.60")
    undone = asked(2, 20.0, kind="undo_whatif", payload={"run": 3}, undo_of=1)
    event = logged(7, 10.0, "alpha", 1, text="α 0.50 → 0.60", old=0.5, new=0.6)
    line = audit.entries([applied, undone], {1: event}, [], undo_of([applied, undone], [event]), 9)[-1]
    assert line.what == "#1 apply α 0.60 of fork #3, no guard"
    assert line.values == "α 0.50 → 0.60"
    assert line.change.outcome == "✓ applied: α 0.60, undone"


def test_a_fork_is_not_said_to_be_applied() -> None:
    (line,) = audit.entries([asked(1, 10.0, kind="whatif", payload={"spec": {}})], {}, [], NONE, 9)
    assert line.change.outcome == "✓ forked"


def test_a_refused_scenario_tells_which_was_asked_for() -> None:
    payload = {"scenario": "burst", "seed": 3}
    row = asked(1, 10.0, kind="scenario", payload=payload, state="refused", expected="demo-mixed")
    (line,) = audit.entries([row], {}, [], NONE, 9)
    assert (line.what, line.values) == ("#1 scenario", "demo-mixed → burst")
