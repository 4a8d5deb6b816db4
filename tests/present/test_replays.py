"""The two twin runs behind a prediction, side by side."""

from typing import Any

from control.present import replays
from control.present.replays import Side
from tests.support import details


def stored(number: int, kind: str, params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "kind": kind, "params": params, "result": result, "created_at": 0.0, "label": ""}


def twin(number: int, alpha: float, **changed: Any) -> dict[str, Any]:
    return stored(number, "prediction", *details.prediction(alpha, **changed))


PAIR = replays.sides(twin(1, 0.4), twin(2, 0.2, p95_s=27.4, slo_attainment=0.958, slo_debt_s=None))


def rows(shown: list[Side]) -> dict[str, list[str]]:
    return {row[0].text: [cell.text for cell in row[1:]] for row in replays.figures(shown).rows}


def test_each_alpha_has_a_column_and_the_difference_says_who_is_better() -> None:
    table = replays.figures(PAIR)
    assert [cell.text for cell in table.heads] == ["", "α 0.40 chosen", "α 0.20 in force", "Difference"]
    assert rows(PAIR)["P95 latency"] == ["24 s", "27.4 s", "−3.40 s"]
    assert rows(PAIR)["SLO attainment"] == ["93.8 %", "95.8 %", "−2 points"]
    assert rows(PAIR)["Mean latency"] == ["12.6 s", "12.6 s", "0 s"]
    kinds = {row[0].text: row[3].kind for row in table.rows}
    assert [kinds[name] for name in ("P95 latency", "SLO attainment", "P50 latency")] == [
        "num good",
        "num amber",
        "num muted",
    ]


def test_a_figure_that_was_not_measured_is_a_dash() -> None:
    assert rows(PAIR)["SLO debt"] == ["41 s", "–", "–"]


def test_where_the_alpha_in_force_was_chosen_there_is_one_column() -> None:
    shown = replays.sides(twin(1, 0.2), twin(2, 0.2))
    assert [cell.text for cell in replays.figures(shown).heads] == ["", "α 0.20 chosen, in force already"]
    assert rows(shown)["P95 latency"] == ["24 s"]


def test_a_twin_run_that_is_gone_leaves_the_other() -> None:
    assert [side.head for side in replays.sides(None, twin(2, 0.2))] == ["α 0.20 in force"]
    assert replays.sides(None, None) == []


def test_instances_are_compared_by_name() -> None:
    other = details.prediction(0.2)[1]["per_instance"][::-1]
    table = replays.instances(replays.sides(twin(1, 0.4), twin(2, 0.2, per_instance=[*other, {"name": "new"}])))
    assert [cell.text for cell in table.heads][1:3] == ["Finished, α 0.40", "Finished, α 0.20"]
    assert [cell.text for cell in table.rows[0]] == ["h100-0", "400", "400", "92 %", "92 %", "0", "0"]
    assert [cell.text for cell in table.rows[3]] == ["new", *["–"] * 6]


def test_what_was_replayed_is_said() -> None:
    assert replays.replayed(PAIR[0]) == (
        "Replayed the 600 s before 1,800 s of simulated time, hexgen: 96 workflows, "
        "one of the resamples behind the prediction, all ended after 655 s"
    )


def test_only_its_own_tuning_run_claims_a_twin_run() -> None:
    params, result = details.run(predicted_run=1, unchanged_run=2)
    tune = stored(3, "tune", params, result)
    assert [replays.is_of(tune, number) for number in (1, 2, 3)] == [True, True, False]
    assert not replays.is_of(stored(4, "tune", *details.run()), 1)
    assert not replays.is_of(twin(1, 0.4), 1)
    assert not replays.is_of(None, 1)
