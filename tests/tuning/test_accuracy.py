"""Replays of recorded runs: what was recorded is what is compared, and the twin stays near real engines."""

from pathlib import Path
from typing import Any

import pytest

from control.errors import SettingError, TraceError
from control.model.hardware import profile
from control.tuning.accuracy import accuracy, error_name
from control.tuning.accuracy_setup import Host, host_of, set_up, with_host
from control.tuning.accuracy_work import drawn
from control.workload.runs import Totals, read_run
from tests.support.recorded import KWARGS, requests_run, row, totals_run

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
RTX = DATA / "vllm_run_rtxpro6000_llama3_8b"
H100 = DATA / "gpu_runs_h100"
real = pytest.mark.skipif(not RTX.exists(), reason="the recorded runs are not on this machine")


@real
def test_the_twin_is_near_a_real_engine_with_nothing_fitted_to_the_run() -> None:
    """300 ShareGPT requests on vLLM 0.19, RTX PRO 6000: mean TTFT within 5 %, TPOT and E2E within 3 %."""
    result = accuracy(read_run(str(RTX)), "RTXPRO6000")
    metrics = result["metrics"]
    assert abs(metrics["ttft_mean_error"]) < 0.05, metrics
    assert abs(metrics["tpot_mean_error"]) < 0.03, metrics
    assert abs(metrics["e2e_mean_error"]) < 0.03, metrics
    assert result["engine"]["host_overhead_ms"] == 1.0
    assert (result["requests"], result["refused"], result["engine"]["max_num_seqs"]) == (300, 0, 128)


@real
@pytest.mark.parametrize("run", sorted(path.name for path in H100.glob("background*")) if H100.exists() else [])
def test_runs_without_single_requests_are_met_within_the_error_of_their_costs(run: str) -> None:
    """vLLM 0.6 on an H100 with 64 GB; datasheet scaling alone is known to err by 8-17 %."""
    result = accuracy(read_run(str(H100 / run)), "H100")
    assert result["profile"]["gpu"] == "H100-64GB"
    assert abs(result["metrics"]["e2e_mean_error"]) < 0.15, result["metrics"]
    assert abs(result["metrics"]["itl_mean_error"]) < 0.15, result["metrics"]


def lone_requests(outputs: int = 51) -> list[dict[str, Any]]:
    """Three requests far apart, as fast as the fit says an RTX PRO 6000 is without any host overhead."""
    return [row(100.0 * i, 512, outputs, 0.030, 0.030 + 0.0113 * (outputs - 1)) for i in range(3)]


@pytest.mark.parametrize("zipped", [True, False])
def test_lone_requests_are_compared_request_by_request(tmp_path: Path, zipped: bool) -> None:
    run = requests_run(tmp_path / "run", lone_requests(), {"engine_kwargs": KWARGS, "vllm_version": "0.19.0"}, zipped)
    result = accuracy(read_run(str(run)), "RTXPRO6000:Llama-3.1-8B")
    assert result["measured"]["tpot_mean_s"] == pytest.approx(0.0113)
    assert result["measured"]["e2e_mean_s"] == pytest.approx(0.595)
    assert result["predicted"]["tpot_mean_s"] == pytest.approx(0.0113, rel=0.15)
    error = result["predicted"]["e2e_mean_s"] / 0.595 - 1.0
    assert result["metrics"]["e2e_mean_error"] == pytest.approx(error)


def test_a_run_that_names_its_hardware_needs_no_profile(tmp_path: Path) -> None:
    meta = {"engine_kwargs": KWARGS, "gpu": "NVIDIA H100 80GB HBM3"}
    result = accuracy(read_run(str(requests_run(tmp_path / "run", lone_requests(), meta))), None)
    assert (result["profile"]["gpu"], result["profile"]["model"]) == ("H100", "Llama-3.1-8B")


def test_a_folder_may_name_the_gpu_and_then_it_is_said(tmp_path: Path) -> None:
    run = requests_run(tmp_path / "vllm_run_l40s_llama3", lone_requests(), {"engine_kwargs": KWARGS})
    result = accuracy(read_run(str(run)), None)
    assert result["profile"]["gpu"] == "L40S"
    assert any("from the name of its folder" in note for note in result["notes"])


def test_a_run_of_unknown_hardware_asks_for_a_profile(tmp_path: Path) -> None:
    run = read_run(str(requests_run(tmp_path / "run", lone_requests(), {"engine_kwargs": KWARGS})))
    with pytest.raises(SettingError, match=r"--profile is missing: .*run does not name its GPU; expected one of A100"):
        accuracy(run, None)
    with pytest.raises(SettingError, match=r"--profile = 'H10': no such GPU"):
        accuracy(run, "H10")
    with pytest.raises(SettingError, match=r"--profile: model 'nope' is not in the catalogue"):
        accuracy(run, "H100:nope")


def test_other_names_of_the_columns_and_failed_requests_are_understood(tmp_path: Path) -> None:
    rows = [
        {
            "arrival_s": 0.0,
            "prompt_tokens": 100,
            "completion_tokens": 11,
            "first_token_time": 0.1,
            "finished_time": 0.3,
        },
        {"arrival_s": 1.0, "prompt_tokens": 100, "completion_tokens": None, "first_token_time": None},
    ]
    run = read_run(str(requests_run(tmp_path / "h100", rows, {"model": "Llama-3.1-8B"})))
    assert run.notes == ("1 requests without tokens or an end are left out",)
    result = accuracy(run, None)
    assert result["measured"]["tpot_mean_s"] == pytest.approx(0.02)
    assert result["metrics"]["ttft_mean_error"] is not None


def test_times_of_two_clocks_are_not_compared(tmp_path: Path) -> None:
    """Arrivals by the wall clock and tokens by a monotonic one say nothing of TTFT."""
    rows = [{"arrival_time": 1.7e9, "input_toks": 9, "output_toks": 3, "first_token_ts": 5.0, "last_token_ts": 6.0}]
    run = read_run(str(requests_run(tmp_path / "h100", rows, {"model": "Llama-3.1-8B"})))
    assert accuracy(run, None)["metrics"]["ttft_mean_error"] is None


def test_several_replicas_share_the_requests(tmp_path: Path) -> None:
    meta = {"engine_kwargs": KWARGS | {"data_parallel_size": 2}, "gpu": "H100"}
    rows = [row(0.0, 512, 101, 0.03, 1.0)] * 16
    one = accuracy(read_run(str(requests_run(tmp_path / "one", rows, {"engine_kwargs": KWARGS, "gpu": "H100"}))), None)
    two = accuracy(read_run(str(requests_run(tmp_path / "two", rows, meta))), None)
    assert two["predicted"]["e2e_mean_s"] < one["predicted"]["e2e_mean_s"]


def test_a_run_of_totals_compares_the_means_that_there_are(tmp_path: Path) -> None:
    result = accuracy(read_run(str(totals_run(tmp_path / "background__llama-2-7b___16_"))), "H100")
    assert result["profile"]["gpu"] == "H100-64GB"
    assert result["engine"]["max_num_seqs"] == 16
    assert result["engine"]["kv_tokens"] == 5644 * 16
    assert result["measured"]["e2e_mean_s"] == pytest.approx(15.0 + 0.0151 * 199)
    assert result["measured"]["power_w"] == 320.0
    assert result["metrics"]["e2e_p95_error"] is None
    assert result["metrics"]["duration_error"] is not None


def test_kv_use_in_percent_reads_like_a_share(tmp_path: Path) -> None:
    share = read_run(str(totals_run(tmp_path / "a_16_", 0.05)))
    percent = read_run(str(totals_run(tmp_path / "b_16_", 5.0)))
    assert share.totals is not None
    assert percent.totals is not None
    assert share.totals.context_tokens == pytest.approx(percent.totals.context_tokens)


def test_drawn_lengths_have_the_recorded_means_and_spread() -> None:
    requests = drawn(Totals(5000, 500_000, 1_500_000, None, 100.0 + 300.0 * 0.78))
    outputs = requests.output_tokens
    assert requests.input_tokens.mean() == pytest.approx(100.0, rel=0.01)
    assert outputs.mean() == pytest.approx(300.0, rel=0.01)
    assert outputs.std() / outputs.mean() == pytest.approx(0.75, rel=0.05)
    assert not requests.arrival_s.any()


def test_old_engines_pay_the_host_for_every_sequence() -> None:
    assert host_of("0.6.3.post1").seq_ms > 0.0
    assert host_of("0.19.0") == host_of(None) == Host(1.0, 0.0)
    plain = profile("H100", "Llama-3.1-8B")
    heavier = with_host(plain, 0.1)
    assert float(heavier.decode[0].base.at(64)) == pytest.approx(float(plain.decode[0].base.at(64)) + 6.4)
    assert heavier.mixed.seq_ms == pytest.approx(plain.mixed.seq_ms + 0.1)


def test_an_eight_bit_cache_holds_twice_the_tokens(tmp_path: Path) -> None:
    full = read_run(str(requests_run(tmp_path / "a", lone_requests(), {"engine_kwargs": KWARGS})))
    half = read_run(
        str(requests_run(tmp_path / "b", lone_requests(), {"engine_kwargs": KWARGS | {"kv_cache_dtype": "fp8"}}))
    )
    tokens = [set_up(run, "H100").spec.kv_tokens or 0 for run in (full, half)]
    assert tokens[1] == pytest.approx(2 * tokens[0], abs=2)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("requests.jsonl", b'{"input_toks": 1}\n', "requests.jsonl:1: queued_ts is missing"),
        ("requests.jsonl", b'{"queued_ts": 1, "input_toks": "x"}\n', "requests.jsonl:1: 'x': expected a finite number"),
        ("requests.jsonl.gz", b"no gzip", "not gzipped"),
        ("metrics_engine_0.csv", b"time [s]\n", "no summary"),
        ("notes.txt", b"", "no recorded run"),
    ],
)
def test_a_folder_that_is_no_run_says_what_is_wrong(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TraceError, match=what):
        read_run(str(tmp_path))
    with pytest.raises(TraceError, match="no such file"):
        read_run(str(tmp_path / "missing"))


def test_errors_are_named_after_their_figures() -> None:
    names = [error_name(name) for name in ("e2e_p95_s", "output_tokens_per_s", "power_w")]
    assert names == ["e2e_p95_error", "output_tokens_error", "power_error"]
