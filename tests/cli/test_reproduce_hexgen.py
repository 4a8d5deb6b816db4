"""`headway reproduce hexgen`: its JSON contract, its table and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from control.cli.main import main

HEADER = "input_tokens,output_tokens,a100_s,a6000_s,l40s_s\n"


def answer(capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """The JSON that the command prints."""
    assert main(["reproduce", "hexgen", *options, "--json"]) == 0
    result: dict[str, Any] = json.loads(capfd.readouterr().out)
    return result


def test_json_has_a_run_for_each_policy_and_says_which_times(capfd: pytest.CaptureFixture[str]) -> None:
    result = answer(capfd)
    assert [run["policy"] for run in result["runs"]][:5] == ["rr-fcfs", "vtc", "rr-pq", "wb-fcfs", "hexgen"]
    assert result["profile"] == "linear fits"
    assert result["reference"] == []  # a generated trace is not the authors'
    for run in result["runs"]:
        shares = [run["attainment"][scale] for scale in "12345"]
        assert shares == sorted(shares)
        assert (run["fleet"], run["rate"], run["seed"]) == ("hexgen-hetero-1", 0.5, 0)


def test_a_sweep_runs_every_alpha_and_rate(capfd: pytest.CaptureFixture[str]) -> None:
    result = answer(capfd, "--fleet", "hetero-2", "--rate", "0.5,1", "--alpha", "0,0.5")
    grid = [(run["rate"], run["alpha"]) for run in result["runs"] if run["policy"] == "hexgen"]
    assert grid == [(0.5, 0.0), (0.5, 0.5), (1.0, 0.0), (1.0, 0.5)]
    assert {run["alpha"] for run in result["runs"] if run["policy"] == "vtc"} == {None}


def test_the_table_is_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "hexgen", "--fleet", "homo"]) == 0
    text = capfd.readouterr().out
    assert "base SLO 47.805 s" in text
    assert "rr-fcfs" in text


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("275,4,0.2,0.3", "p.csv:2: another number of cells"),
        ("275,x,0.2,0.3,0.3", "p.csv:2: output_tokens = 'x': expected a whole number >= 1"),
        ("275,4,0.2,-1,0.3", "p.csv:2: a6000_s = '-1': expected seconds"),
        ("275,4,1,1,1\n275,4,1,1,1", "p.csv:3: pair 275, 4 is there twice"),
        ("275,4,1,1,1", "is missing"),
    ],
)
def test_a_bad_profile_is_one_line_and_two(
    row: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(HEADER + row + "\n")
    assert main(["reproduce", "hexgen", "--profile", str(path)]) == 2
    error = capfd.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "options", [["--rate", "x"], ["--rate", "0"], ["--alpha", "2"], ["--alpha", ","], ["--fleet", "demo-mixed"]]
)
def test_bad_options_name_themselves(options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "hexgen", *options]) == 2
    assert options[0].lstrip("-") in capfd.readouterr().err
