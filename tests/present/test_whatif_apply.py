"""What is said of a setting before and after it is applied."""

from typing import Any

import pytest

from control.present import whatif_apply, whatif_kept
from tests.support import forks
from tests.support.snapshots import snapshot


def entry(name: str, undone_by: int | str | None = None) -> dict[str, Any]:
    """An application, as a run keeps it."""
    return {"command": 5, "setting": 7, "name": name, "things": {}} | (
        {} if undone_by is None else {"undone_by": undone_by}
    )


@pytest.mark.parametrize(
    ("applied", "guard", "told"),
    [
        ([entry("α 0.60")], None, "applied"),
        ([entry("α 0.60")], "kept", "✓ kept"),
        ([entry("α 0.60")], "watching", "… watching, P95 10.4 s"),
        ([entry("α 0.60", 6)], "kept", "undone"),
        ([entry("α 0.60", 6)], None, "undone"),
        ([entry("α 0.60"), entry("α 0.90", 6)], "ended", "undone, α 0.60 stands"),
        ([entry("α 0.60", "guard")], "rolled_back", "↩ rolled back"),
        ({"setting": 7, "back": []}, "kept", "✓ kept"),
        (None, None, ""),
    ],
)
def test_a_list_says_what_became_of_a_fork(applied: Any, guard: str | None, told: str) -> None:
    run = forks.run(applied=applied, guard=None if guard is None else forks.guard(guard, 10.4))
    assert whatif_apply.outcome(run) == told
    assert whatif_kept.history([run], ["12:00:01"]).rows[0][-1].text == told


def test_only_what_lies_beyond_its_band_is_called_worse() -> None:
    rows = [forks.setting(0, "as it is", 13.2), forks.setting(1, "a", 14.0), forks.setting(2, "b", 16.0)]
    run = forks.run(settings=rows)
    assert whatif_apply.warnings(run, 0, None) == whatif_apply.warnings(run, 1, None) == []
    assert whatif_apply.warnings(run, 2, None) == ["Predicted worse: P95 +21 %."]


@pytest.mark.parametrize(
    ("minutes", "age_s", "told"),
    [
        (5.0, 200.0, []),
        (5.0, 480.0, ["This fork is 8 simulated min old."]),
        (1.0, 130.0, ["This fork is 2 simulated min old."]),
    ],
)
def test_a_fork_that_is_old_is_called_so(minutes: float, age_s: float, told: list[str]) -> None:
    run = forks.run()
    run["params"] = forks.params(minutes=minutes)
    assert whatif_apply.warnings(run, 7, snapshot(sim_s=4210.0 + age_s)) == told


def test_a_fork_is_of_what_runs_now_where_scenario_seed_and_fleet_agree() -> None:
    run = forks.run()
    assert whatif_apply.elsewhere(run, None) == whatif_apply.elsewhere(run, snapshot()) == ""
    run["params"] = run["params"] | {"seed": 4}
    assert whatif_apply.elsewhere(run, snapshot()) == (
        "The fork is of demo-mixed, seed 4, on demo-mixed; what runs now is demo-mixed, seed 1, on demo-mixed."
    )
