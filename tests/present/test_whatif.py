"""What a fork shows: its lines from the past on, its table, and what applying would do."""

from typing import Any

import pytest

from control.present import shadows, whatif, whatif_apply, whatif_ask, whatif_kept, whatif_picture
from control.present.wording import Order, asked, effect, inverse, order
from tests.support import forks
from tests.support.snapshots import snapshot


def chart(run: dict[str, Any], key: str = "p95_s", limit: float | None = None) -> dict[str, Any]:
    charts = whatif_picture.picture(run, 7, limit)["charts"]
    found: dict[str, Any] = next(c for c in charts if c["key"] == key)
    return found


def test_every_line_goes_on_from_where_the_past_ends() -> None:
    drawn = chart(forks.run())
    assert drawn["past"]["x"][0] == -5.0
    assert drawn["past"]["x"][-1] == drawn["x"][0] == 0.0
    assert drawn["x"][-1] == 5.0
    for line in drawn["lines"].values():
        assert {values[0] for values in line.values()} == {drawn["past"]["y"][-1]}
        assert {len(values) for values in line.values()} == {len(drawn["x"])}


def test_without_a_past_lines_begin_with_their_first_value() -> None:
    run = forks.run()
    run["params"]["past"] = {"times_s": [], "p95_s": []}
    drawn = chart(run)
    assert drawn["past"] == {"x": [], "y": []}
    assert drawn["x"][0] == round(10 / 60, 3)
    assert len(drawn["lines"]["1"]["mean"]) == len(drawn["x"])


def test_a_long_horizon_is_thinned_to_what_a_chart_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "TIMES_S", [10.0 * k for k in range(1, 181)])
    drawn = chart(forks.run())
    assert (drawn["x"][0], drawn["x"][-1], len(drawn["x"])) == (0.0, 30.0, 91)
    assert drawn["lines"]["7"]["mean"][-1] == 10.0


def test_holes_of_a_line_stay_holes() -> None:
    empty = forks.setting(0, "as it is")
    empty["lines"]["p95_s"]["mean"][3] = None
    assert chart(forks.run(settings=[empty]))["lines"]["0"]["mean"][4] is None


def test_an_axis_holds_all_means_and_is_not_dwarfed_by_one_wide_band() -> None:
    wide = forks.setting(0, "as it is", 13.0)
    wide["lines"]["p95_s"]["high"] = [900.0] * len(forks.TIMES_S)
    assert 13.0 < chart(forks.run(settings=[wide]))["high"] < 40.0


def test_the_limit_of_the_debt_is_drawn_only_where_the_debt_comes_near_it() -> None:
    assert chart(forks.run(), "slo_debt_s", 50.0)["limit"] == 50.0
    assert chart(forks.run(), "slo_debt_s", 600.0)["limit"] is None
    assert chart(forks.run(), "p95_s", 1.0)["limit"] is None


def test_a_sweep_of_alpha_is_on_the_slider_and_other_settings_are_not() -> None:
    picture = whatif_picture.picture(forks.run(), 7)
    assert [s["alpha"] for s in picture["settings"]] == [None, *(k / 10 for k in range(11))]
    assert picture["sweep"]
    assert picture["alpha"] == 0.2  # where the thumb stands for "as it is"
    run = forks.run(settings=[forks.setting(0, "as it is"), forks.setting(1, "edf")])
    run["params"] = forks.params([{"name": "edf", "policy": "edf", "alpha": 0.3}])
    assert not whatif_picture.picture(run, 0)["sweep"]


def test_a_setting_that_cannot_be_is_told_and_not_drawn() -> None:
    rows = [forks.setting(0, "as it is"), {"index": 1, "name": "add 9", "problem": "the fleet would be too large"}]
    run = forks.run(settings=rows)
    run["params"] = forks.params([{"name": "add 9", "changes": []}])
    picture = whatif_picture.picture(run, 0)
    assert ([s["index"] for s in picture["settings"]], picture["rows"]) == ([0], [0, 1])
    last = whatif.table(run).rows[1]
    assert last[-1].text == "✕ the fleet would be too large"
    assert len(last) == len(whatif.table(run).heads)


def test_the_best_setting_is_marked_with_a_word_and_its_change() -> None:
    rows = whatif.table(forks.run()).rows
    remarks = [row[-1].text for row in rows]
    assert remarks == ["", *[""] * 6, "✓ best", *[""] * 4]
    assert [cell.text for cell in rows[7]][:5] == ["α 0.60", "4.10 s", "10.0 s", "9.00 to 11.0 s", "−24 %"]
    assert whatif.verdict(forks.run()) == "Best: α 0.60, P95 10.0 s (9.00 to 11.0 s), −24 % against as it is."


def test_a_fork_that_finds_nothing_better_says_so() -> None:
    run = forks.run(best=0)
    assert "No setting is surely better" in whatif.verdict(run)
    assert "best" not in " ".join(row[-1].text for row in whatif.table(run).rows)


def test_a_fork_says_when_it_was_made_and_what_it_cost() -> None:
    run = forks.run()
    assert whatif.about(run, "12:03:11") == (
        "Forked at 12:03:11, simulated 4,210 s, next 5 min, 8 seeds, arrivals resampled, hexgen, α 0.20"
    )
    assert whatif.took(run) == "first setting after 310 ms, all 12 after 1.90 s (3.40 s of CPU)"
    run["params"] = forks.params(back_s=180.0, arrivals="own", seeds=1)
    assert (
        "4,210 s, 180 s back, next 5 min, the workload's own arrivals and lengths (knows the future)"
        in whatif.about(run, "12:03:11")
    )


@pytest.mark.parametrize("result", [None, {}, {"state": "running", "progress": 0.0}, {"state": "failed"}])
def test_a_fork_without_settings_yet_is_no_error(result: Any) -> None:
    run = forks.run() | {"result": result}
    assert [row[0].text for row in whatif.table(run).rows][:3] == ["as it is", "α 0.00", "α 0.10"]
    assert whatif_picture.picture(run, 0)["settings"] == []
    assert (whatif.took(run), whatif.words(None)) == ("", "–")
    assert "best is" in whatif.verdict(run)
    assert whatif_apply.blocked(run, 3) == "It is not computed yet."
    assert whatif_kept.history([run], ["12:00:01"]).rows[0][0].text == "#12"
    assert whatif_kept.compared(run, forks.run(13)).rows


def test_a_setting_that_is_not_done_waits_in_its_row() -> None:
    run = forks.run(settings=forks.swept()[:3], state="running", progress=0.25)
    rows = whatif.table(run).rows
    assert [row[-1].text for row in rows] == ["", "", "", *["…"] * 9]
    assert whatif.took(run) == "first setting after 310 ms, 3 of 12 done"


def test_a_figure_that_is_not_there_is_a_dash() -> None:
    bare = forks.setting(0, "as it is")
    bare["figures"]["p95_s"] = forks.band(None)
    run = forks.run(settings=[bare])
    assert whatif.table(run).rows[0][2].text == "–"
    assert whatif_apply.promise(run, 0) == "no P95 is foretold, for nothing ends in that time"


def test_applying_shows_its_commands_and_its_promise() -> None:
    run = forks.run()
    assert whatif_apply.preview(run, 7) == ["α 0.60"]
    assert whatif_apply.promise(run, 7) == "P95 10.0 s, band 9.00 to 11.0 s; as it is 13.2 s (11.9 to 14.5 s)"
    assert whatif_apply.blocked(run, 7) == ""
    assert whatif_apply.blocked(run, 0) == "It is in force already."


def test_what_cannot_be_applied_gives_the_engines_reason() -> None:
    rows = [forks.setting(0, "as it is"), forks.setting(1, "add one", applicable=False, why_not="It adds hardware.")]
    run = forks.run(settings=rows)
    assert whatif_apply.blocked(run, 1) == "It adds hardware."
    assert whatif.table(run).rows[1][-1].text == "not live"


@pytest.mark.parametrize(
    ("guard", "kind", "text"),
    [
        (forks.guard(), "pending", "… watching α 0.60 until simulated 4,510 s: P95 must stay within 11.0 s."),
        (forks.guard("kept", 10.4), "applied", "✓ α 0.60 kept its promise: P95 10.4 s, promised at most 11.0 s."),
        (
            forks.guard("rolled_back", 14.0, why="The load rose."),
            "refused",
            "↩ α 0.60 was rolled back: P95 14.0 s, promised at most 11.0 s. The load rose.",
        ),
        (forks.guard("replaced"), "none", "α 0.60 is no longer watched: replaced."),
    ],
)
def test_the_guard_says_what_it_found(guard: dict[str, Any], kind: str, text: str) -> None:
    run = forks.run(guard=guard)
    assert whatif_apply.guard_words(run) == (kind, text)
    assert whatif_apply.watching(run) == (kind == "pending")


def test_two_forks_are_compared_by_best_and_by_name() -> None:
    other = forks.run(13, settings=[forks.setting(0, "as it is", 15.0), forks.setting(1, "α 0.60", 12.0)], best=1)
    rows = [[cell.text for cell in row] for row in whatif_kept.compared(forks.run(), other).rows]
    assert [row[0] for row in rows] == ["best: α 0.60, α 0.60", "as it is", "α 0.60"]
    assert rows[0][1:4] == ["10.0 s", "12.0 s", "−2 s"]
    assert [trace.get("name") for trace in whatif_kept.lines(forks.run(), other)["data"]][2::3] == [
        "#12 α 0.60",
        "#13 α 0.60",
    ]


def test_presets_name_their_settings() -> None:
    assert [s["alpha"] for s in whatif_ask.alphas()] == [k / 10 for k in range(11)]
    assert whatif_ask.changes(["fail", "role"], ["l4-0"], "prefill") == [
        {"name": "fail l4-0", "changes": [{"do": "fail", "instance": "l4-0"}]},
        {"name": "turn l4-0 to prefill", "changes": [{"do": "role", "instance": "l4-0", "role": "prefill"}]},
    ]
    (added,) = whatif_ask.changes(["add"], ["l4-0"])
    assert added["changes"] == [{"do": "add", "like": "l4-0", "count": 1}]
    (kept,) = whatif_ask.retentions([None], "oracle")
    assert kept == {"name": "keep idle for good", "retention": {"need": "oracle", "idle_ttl_s": None}}


def test_caps_run_from_none_at_the_tdp_down() -> None:
    levels = whatif_ask.caps("H100", 400.0, 700.0, 4, 700.0)
    assert [s["changes"][0]["cap_w"] for s in levels] == [None, 600.0, 500.0, 400.0]
    assert [s["name"] for s in levels][:2] == ["H100 without cap", "H100 at 600 W"]
    assert len(whatif_ask.caps("H100", 500.0, 500.0, 4, 700.0)) == 1


def test_the_workloads_own_future_has_one_seed() -> None:
    spec = whatif_ask.spec(whatif_ask.alphas(), 10, 8, "own", 3)
    assert (spec["seeds"], spec["minutes"], spec["back_s"]) == (1, 10.0, 180.0)


def test_too_many_settings_are_refused_with_what_is_accepted() -> None:
    assert whatif_ask.too_many(whatif_ask.alphas()) == ""
    assert "accepted: 1 to 39" in whatif_ask.too_many(whatif_ask.alphas(40))


def test_a_fork_reads_as_what_it_asked_for() -> None:
    spec = whatif_ask.spec(whatif_ask.alphas())
    row = {"kind": "whatif", "payload": {"spec": spec}, "state": "applied", "expected": None}
    assert asked(row) == "what if: α 0.00 to 1.00, next 5 min, 8 seeds, arrivals resampled"
    assert inverse(row) is None
    many = whatif_ask.spec(whatif_ask.policies(["a", "b", "c", "d"]))
    assert whatif_ask.what(many) == "a, b, c and 1 more"


@pytest.mark.parametrize(
    ("kind", "value", "payload", "words"),
    [
        (
            "apply_whatif",
            {"run": 12, "setting": 7, "guard_minutes": 5},
            {"run": 12, "setting": 7, "guard_minutes": 5},
            "apply setting 7 of fork #12, guarded 5 min",
        ),
        ("end_guard", None, {}, "stop watching"),
        ("shadows", ["edf"], {"policies": ["edf"]}, "shadow edf"),
        ("shadows", [], {"policies": []}, "shadow nothing"),
    ],
)
def test_orders_of_forks_and_shadows(kind: str, value: Any, payload: dict[str, Any], words: str) -> None:
    assert order(kind, value) == Order(kind, payload)
    assert asked({"kind": kind, "payload": payload, "expected": None}) == words


def test_a_shadow_stands_beside_the_policy_in_force_with_its_gap() -> None:
    row = {"policy": "edf", "alpha": None, "p95_s": 14.3456, "slo_attainment": 0.9454, "slo_debt_s": 2.5}
    seen = snapshot(shadows=[row])
    real, shadow = ([cell.text for cell in cells] for cells in shadows.table(seen).rows)
    assert real[0] == "hexgen, in force"
    assert shadow == ["edf", "14.3 s", "+2 s", "94.5 %", "−5 pt", "2.50 s", "−2 s"]
    assert shadows.running(seen) == ["edf"]
    assert shadows.offered(seen) == ["rr-fcfs", "edf"]


@pytest.mark.parametrize("seen", [snapshot(), snapshot(shadows=None)])
def test_without_shadows_only_the_policy_in_force_is_shown(seen: dict[str, Any]) -> None:
    assert shadows.running(seen) == []
    assert len(shadows.table(seen).rows) == 1
    assert shadows.chosen([], seen)


FORECAST = {"running": 12, "waiting": 2, "conversations": 3, "kv_tokens": 81_000, "recompute_tokens": 41_000}
FORECAST |= {"deadlines_at_risk": 1, "drain_s": 42.0}


def test_a_kill_tells_what_it_would_cost_now() -> None:
    text = effect("kill", "l4-0", 12, 2, FORECAST)
    assert text.endswith(
        "Now it would lose 3 conversations and 81,000 tokens of KV, compute 41,000 tokens again, "
        "and put 1 deadline at risk."
    )
    assert effect("kill", "l4-0", 12, 2) in text


def test_a_drain_tells_what_it_waits_for() -> None:
    assert effect("drain", "l4-0", 12, 2, FORECAST).endswith(
        "Conversations kept there end first: 3 conversations. That takes about 42 s."
    )
    unknown = effect("drain", "l4-0", 12, 2, FORECAST | {"drain_s": None, "conversations": 0})
    assert unknown.endswith("undrained. How long that takes is not known.")
