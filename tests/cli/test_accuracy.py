"""`headway accuracy`: one object with --json, a table without, one line for bad input."""

import json
from pathlib import Path

from tests.cli.conftest import Headway
from tests.support.recorded import KWARGS, requests_run, row


def test_errors_come_as_one_object_or_as_a_table(headway: Headway, tmp_path: Path) -> None:
    rows = [row(10.0 * i, 512, 51, 0.05, 0.6) for i in range(3)]
    requests_run(tmp_path / "run", rows, {"engine_kwargs": KWARGS})
    said = headway("accuracy", "run", "--profile", "RTXPRO6000", "--json")
    assert said.code == 0, said.err
    metrics = json.loads(said.out)["metrics"]
    assert {"ttft_mean_error", "tpot_mean_error", "e2e_mean_error", "e2e_p95_error"} <= metrics.keys()
    shown = headway("accuracy", "run", "--profile", "RTXPRO6000")
    assert "E2E mean" in shown.out
    assert "costs fitted" in shown.out


def test_bad_input_is_one_line(headway: Headway, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    bad_profile = tmp_path / "bad.json"
    bad_profile.write_text("{}")
    requests_run(tmp_path / "run", [row(0.0, 5, 5, 0.1, 0.2)], {"engine_kwargs": KWARGS})
    for arguments, what in (
        (("missing",), "no such file"),
        (("empty",), "no recorded run"),
        (("run",), "--profile is missing"),
        (("run", "--profile", "bad.json"), "headway_profile = None: version 1 is accepted"),
        (("run", "--profile", "Q100"), "no such GPU or file"),
    ):
        said = headway("accuracy", *arguments, "--json")
        assert (said.code, said.out, len(said.err.strip().splitlines())) == (2, "", 1), said
        assert what in said.err
