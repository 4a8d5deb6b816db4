"""`headway reproduce conserve`: its JSON contract, its tables and what it refuses."""

import json
from pathlib import Path

import pytest

from control.cli.reproduce_conserve import caps_of, errors_of
from tests.cli.conftest import Headway

HEADER = "conv_id,iter_id,appended_input,total_input,out_token_size,carried_over\n"
FIGURES = ("ttfet_gmean", "ttfet_p95", "tbt_p95", "e2e_p95", "tokens_per_joule", "tokens_per_joule_idle_billed")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three conversations of three turns."""
    rows = [
        f"{c},{t},{5000 if t == 0 else 50},{5000 + 100 * t},50,{0 if t == 0 else 5000 + 100 * t - 50}"
        for c in range(3)
        for t in range(3)
    ]
    path = tmp_path / "talks.csv"
    path.write_text(HEADER + "\n".join(rows) + "\n")
    return path


def test_json_has_a_run_for_each_policy_rate_cap_and_convention(headway: Headway, trace: Path) -> None:
    said = headway("reproduce", "conserve", "--trace", trace, "--rates", "1,2", "--caps", "300/200", "--json")
    assert said.code == 0
    result = json.loads(said.out)
    runs = result["runs"]
    assert [run["policy"] for run in runs[:4]] == ["collocated", "full-disagg", "ampd", "conserve"]
    assert [(run["need"], run["prefill_queue"]) for run in runs] == [("oracle", False)] * 8 + [("observed", True)] * 8
    assert {(run["rate"], run["caps"]) for run in runs} == {(1.0, "300/200"), (2.0, "300/200")}
    assert result["reference"] == []  # not the paper's trace
    for run in runs:
        assert run["error"] == (10.0 if run["policy"] == "ampd" else None)
        assert set(run["violations"]) == {"ttfet", "tbt", "e2e"}
        assert all(run[figure] > 0.0 for figure in FIGURES)


def test_leading_turns_are_kept_and_the_tables_are_for_people(headway: Headway, trace: Path) -> None:
    options = ("--trace", trace, "--rates", "1", "--error", "0..10", "--turns", "2")
    said = headway("reproduce", "conserve", *options)
    assert said.code == 0
    assert "3 conversations, 6 calls" in said.out
    assert "the paper's conventions" in said.out
    assert "AMPD by error at 1 conversations/s" in said.out


def test_a_generated_trace_says_so(headway: Headway) -> None:
    said = headway("reproduce", "conserve", "--rates", "0.5", "--caps", "300/300", "--turns", "2", "--json")
    result = json.loads(said.out)
    assert (result["conversations"], result["calls"], result["reference"]) == (255, 510, [])
    assert "generated" in result["problems"][0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rates", "x"], "--rates"),
        (["--rates", "0"], "--rates"),
        (["--rates", "inf"], "--rates"),
        (["--caps", "300"], "--caps"),
        (["--caps", "300/x"], "--caps"),
        (["--caps", ","], "--caps"),
        (["--caps", "300/20"], "--caps = 300/20: power_cap_w = 20"),
        (["--error", "101"], "--error"),
        (["--error", "-1"], "--error"),
        (["--error", "a..b"], "--error"),
        (["--error", "0..inf"], "--error"),
        (["--error", "0..1e9"], "--error"),
        (["--error", "50..0"], "--error"),
        (["--turns", "99999999999999999999"], "--turns"),
        (["--rates", "1e-300"], "--rates"),
        (["--turns", "0"], "--turns = 0"),
        (["--seed", "-1"], "seed = -1"),
        (["--trace", "no.csv"], "no.csv"),
        (["--coding", "no.csv"], "no.csv"),
    ],
)
def test_bad_options_are_one_line_and_two(options: list[str], said: str, headway: Headway) -> None:
    code, out, err = headway("reproduce", "conserve", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_trace_of_another_kind_is_refused(headway: Headway, tmp_path: Path, trace: Path) -> None:
    lone = tmp_path / "azure.csv"
    lone.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
    assert "expected conversations" in headway("reproduce", "conserve", "--trace", lone).err
    assert "expected coding-agent requests" in headway("reproduce", "conserve", "--coding", trace).err


def test_errors_are_listed_or_a_range() -> None:
    assert errors_of("0..50") == [5.0 * k for k in range(11)]
    assert errors_of("0,10,10") == [0.0, 10.0]
    assert [str(pair) for pair in caps_of("300/300, 300/200,300/300")] == ["300/300", "300/200"]
