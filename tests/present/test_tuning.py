"""The tuner's runs as an operator judges them: the curve, the promise, the decision."""

from typing import Any

import pytest

from control.present import tuning
from tests.support import details


def run(alpha: float = 0.4, before: float = 0.2, **changed: Any) -> dict[str, Any]:
    params, result = details.run(alpha, before, **changed)
    return {"params": params, "result": result, "created_at": 0.0}


def test_the_curve_marks_the_alpha_in_force_and_the_chosen_one() -> None:
    figure = tuning.curve(run(), 0.2)
    assert [a["text"] for a in figure["layout"]["annotations"]] == ["chosen 0.40", "now 0.20"]
    assert figure["data"][-1]["x"] == [0.4]


def test_labels_that_would_meet_stand_on_two_lines() -> None:
    assert [a["yshift"] for a in tuning.curve(run(0.4), 0.35)["layout"]["annotations"]] == [0, 12]
    assert [a["yshift"] for a in tuning.curve(run(0.4), 0.9)["layout"]["annotations"]] == [0, 0]


def test_once_in_force_the_chosen_alpha_has_one_label() -> None:
    assert len(tuning.curve(run(), 0.4)["layout"]["annotations"]) == 1


def test_the_band_lies_around_the_curve_and_the_axis_holds_both() -> None:
    figure = tuning.curve(run(), 0.2)
    low, high, line = (trace["y"] for trace in figure["data"][:3])
    assert all(a <= b <= c for a, b, c in zip(low, line, high, strict=True))
    assert figure["layout"]["yaxis"]["range"][1] > max(high)


def test_only_runs_that_were_put_to_the_test_are_judged() -> None:
    runs = [run(), run(realised_p95_s=25.0), run(realised_p95_s=31.0)]
    assert len(tuning.kept(runs)) == 2
    assert tuning.score(runs) == "1 of 2 at or below the predicted band"
    dots = tuning.promise(runs)["data"][1]
    assert (dots["x"], dots["y"]) == ([24.0, 24.0], [25.0, 31.0])
    assert dots["marker"]["color"] == ["@blue", "@amber"]


def test_without_a_tested_run_that_is_said() -> None:
    assert tuning.score([run()]) == "No applied run has been put to the test yet."


@pytest.mark.parametrize(
    ("decision", "word"),
    [
        ("applied", "✓ applied"),
        ("suggested", "suggested"),
        ("kept", "not changed"),
        ("rolled_back", "↩ rolled back"),
    ],
)
def test_history_tells_each_decision_with_its_reason(decision: str, word: str) -> None:
    row = tuning.history([run(decision=decision)], ["12:00:01"]).rows[0]
    assert [cell.text for cell in row[:4]] == ["12:00:01", "timer", "0.20 → 0.40", "−12 %"]
    assert [cell.text for cell in row[6:]] == [word, "better in 97 % of the resamples"]


def test_a_broken_promise_is_marked() -> None:
    broken, held = (tuning.history([run(realised_p95_s=s)], [""]).rows[0][5] for s in (31.0, 25.0))
    assert (broken.text, broken.kind) == ("▲ 31 s", "num amber")
    assert (held.text, held.kind) == ("25 s", "num")


@pytest.mark.parametrize(("gain", "text"), [(0.124, "−12 %"), (0.004, "−0.4 %"), (-0.03, "+3.0 %"), (0.0, "0.0 %")])
def test_a_gain_reads_as_the_change_of_the_latency(gain: float, text: str) -> None:
    assert tuning.history([run(gain=gain)], [""]).rows[0][3].text == text


def test_the_effect_names_its_band() -> None:
    assert tuning.effect(run()) == "P95 −12 % (−18 % to −5.0 %)"


def test_the_tuner_says_what_it_does() -> None:
    assert tuning.standing(details.tuning(running=True, progress=0.4)) == "… running, 40 %"
    assert tuning.standing(details.tuning(running=True)) == "… running"
    assert tuning.standing(details.tuning(mode="off")) == "Idle"
    assert "42 s" in tuning.standing(details.tuning())
    assert tuning.standing(details.tuning(cooldown_s=0.0)) == "Watches the load"


def test_a_proposal_already_in_force_is_none() -> None:
    assert tuning.suggestion(details.tuning(suggested_alpha=0.4), 0.4) is None
    assert tuning.suggestion(details.tuning(suggested_alpha=0.4), 0.2) == 0.4
    assert tuning.suggestion(details.tuning(), 0.2) is None


def test_a_proposal_is_found_among_the_runs() -> None:
    runs = [run(0.3), run(0.4), run(0.4, gain=0.5)]
    assert tuning.run_of(details.tuning(suggested_alpha=0.4), runs) is runs[1]
    assert tuning.run_of(details.tuning(suggested_alpha=0.9), runs) is None
    assert tuning.run_of(details.tuning(), runs) is None
