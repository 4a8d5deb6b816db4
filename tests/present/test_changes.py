"""The list of recent changes tells each change once, newest first."""

from typing import Any

from control.present.changes import changes, undo_of
from control.present.wording import Order


def command(id: int, at: float, **more: Any) -> dict[str, Any]:
    row = {"id": id, "created_at": at, "author": "cli", "kind": "drain", "payload": {"instance": "l4-0"}}
    return row | {"expected": None, "state": "applied", "reason": None, "undo_of": None} | more


def event(id: int, at: float, kind: str, command_id: int | None) -> dict[str, Any]:
    return {"id": id, "at": at, "kind": kind, "text": "", "target": None, "command_id": command_id}


def test_a_command_and_the_event_it_caused_are_one_change() -> None:
    listed = changes([command(1, 10.0)], [event(5, 10.1, "drain", 1), event(6, 20.0, "engine_started", None)], 9)
    assert [(c.what, c.author) for c in listed] == [("engine started", "engine"), ("drain l4-0", "cli")]


def test_what_was_undone_cannot_be_undone_again() -> None:
    undo = command(2, 11.0, kind="undrain", undo_of=1, state="pending")
    newest, oldest = changes([undo, command(1, 10.0)], [], 9)
    assert newest.what == "undo of #1: undrain l4-0"
    assert oldest.undo is None
    assert oldest.outcome == "✓ applied, undo pending"
    assert changes([undo | {"state": "applied"}, command(1, 10.0)], [], 9)[1].outcome == "✓ applied, undone"


def test_an_undo_that_was_refused_leaves_the_button() -> None:
    refused = command(2, 11.0, kind="undrain", undo_of=1, state="refused", reason="gone")
    assert changes([refused, command(1, 10.0)], [], 9)[1].undo is not None


def test_the_old_value_the_engine_recorded_makes_a_blind_command_undoable() -> None:
    blind = command(1, 10.0, kind="alpha", payload={"alpha": 0.9})
    (change,) = changes([blind], [event(5, 10.1, "alpha", 1) | {"old": 0.35, "new": 0.9}], 9)
    assert change.undo == Order("alpha", {"alpha": 0.35}, 0.9)


def test_the_list_is_cut_to_the_newest() -> None:
    listed = changes([command(k, float(k)) for k in range(30)], [], 4)
    assert [c.command_id for c in listed] == [29, 28, 27, 26]


def test_a_fork_that_was_rolled_back_leaves_nothing_to_undo() -> None:
    applied = command(1, 10.0, kind="apply_whatif", payload={"run": 3, "setting": 2, "guard_minutes": 5})
    (before,) = changes([applied], [], 9)
    after = changes([applied], [event(5, 20.0, "rolled_back", None)], 9)
    assert before.undo == Order("undo_whatif", {"run": 3})
    assert [change.undo for change in after if change.command_id == 1] == [None]


def test_after_an_undo_the_application_before_it_can_be_undone_too() -> None:
    rows = [
        command(k, 10.0 * k, kind="apply_whatif", payload={"run": run, "setting": 2, "guard_minutes": 0})
        for k, run in ((1, 3), (2, 3), (3, 4))
    ]
    assert set(undo_of(rows, []).orders) == {3}
    rows.append(command(4, 40.0, kind="undo_whatif", payload={"run": 4}, undo_of=3))
    assert set(undo_of(rows, []).orders) == {2}
    rows.append(command(5, 50.0, kind="undo_whatif", payload={"run": 3}, undo_of=2))
    assert set(undo_of(rows, []).orders) == {1}
