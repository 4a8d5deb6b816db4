"""Recorded series: the last row counts, and percentages are told from shares by the whole column."""

import csv
from pathlib import Path

import pytest

from control.adapters.faults import MetricsError
from control.adapters.recognise import read_file, read_text


def test_last_row_of_every_recorded_run(recorded: Path) -> None:
    paths = sorted((recorded / "gpu_runs_h100").glob("*/metrics_engine_server_0.csv"))
    assert len(paths) == 7
    for path in paths:
        with path.open() as file:
            last = list(csv.DictReader(file))[-1]
        reading = read_file(str(path))
        assert (reading.engine, reading.source) == ("vllm", "engine series")
        assert reading.running == float(last["num_requests_running"])
        assert reading.kv_used_fraction == float(last["gpu_cache_usage_perc"])
        assert reading.generation_tokens == float(last["generation_tokens_total"])
        assert not reading.kv_in_percent


def test_series_of_another_recorder_has_percentages(recorded: Path) -> None:
    path = recorded / "vllm_run_rtxpro6000_llama3_8b" / "timeseries.csv"
    reading = read_file(str(path))
    assert (reading.kv_in_percent, reading.running, reading.waiting) == (True, 0, 0)


def test_small_percentage_is_known_by_the_rows_before_it() -> None:
    text = "time [s],gpu_cache_usage_perc,num_requests_running\n0,55.0,3\n1,0.8,1\n"
    assert read_text(text, "run.csv").kv_used_fraction == pytest.approx(0.008)
    assert read_text("t,running,kv_cache_pct\n0,1,0.8\n", "run.csv").kv_used_fraction == pytest.approx(0.008)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time [s],num_requests_running,num_requests_waiting\n", "run.csv: a header without a row"),
        ("t,running,waiting\n0,1,1\n1,x,0\n", "run.csv:3: running = 'x': expected a number"),
        ("t,running,waiting\n0\n", "run.csv:2: running = None: expected a number"),
    ],
)
def test_broken_series_names_line_and_column(text: str, message: str) -> None:
    with pytest.raises(MetricsError) as error:
        read_text(text, "run.csv")
    assert str(error.value).startswith(message)
