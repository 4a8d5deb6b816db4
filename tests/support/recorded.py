"""Recorded runs made up for tests, in both formats that are read."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

KWARGS = {"model": "meta-llama/Llama-3.1-8B", "tensor_parallel_size": 1, "max_num_seqs": 8, "max_model_len": None}


def requests_run(
    root: Path, rows: list[dict[str, Any]], meta: dict[str, Any] | None = None, zipped: bool = True
) -> Path:
    """A folder with requests.jsonl (gzipped or not) and meta.json."""
    root.mkdir(parents=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (root / f"requests.jsonl{'.gz' if zipped else ''}").write_bytes(gzip.compress(lines) if zipped else lines)
    if meta is not None:
        (root / "meta.json").write_text(json.dumps(meta))
    return root


def row(queued_s: float, inputs: int, outputs: int, ttft_s: float, e2e_s: float) -> dict[str, Any]:
    """One request as the recorder writes it."""
    return {
        "request_id": f"bench-{queued_s}",
        "input_toks": inputs,
        "output_toks": outputs,
        "arrival_time": 1.7e9 + queued_s,
        "queued_ts": 1000.0 + queued_s,
        "first_token_ts": 1000.0 + queued_s + ttft_s,
        "last_token_ts": 1000.0 + queued_s + e2e_s,
    }


def totals_run(root: Path, usage: float = 0.4) -> Path:
    """A folder with a benchmark's summary, the engine's metrics and nvidia-smi's samples."""
    root.mkdir(parents=True)
    summary = {
        "model_id": "llama-2-7b",
        "completed": 200,
        "total_input_tokens": 20_000,
        "total_output_tokens": 40_000,
        "request_rate": "inf",
        "duration": 40.0,
        "mean_ttft_ms": 15_000.0,
        "mean_tpot_ms": 15.0,
        "mean_itl_ms": 15.1,
    }
    (root / "openai-infqps-llama-2-7b.json").write_text(json.dumps(summary))
    config = 'vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="5644"} 1.0\n'
    (root / "cache_config_server_0.txt").write_text("# TYPE vllm:cache_config_info gauge\n" + config)
    table(root / "metrics_engine_server_0.csv", ENGINE, [[float(t), 1.0, usage, 16.0, 10.0] for t in range(40)])
    table(
        root / "metrics_gpu_device_nvidia_smi_0_server_0.csv",
        ["time [s]", " memory.total [MiB]"],
        [[0.1, " 65247 MiB"]],
    )
    draws: list[list[Any]] = [["s", "Idx", "W"], *([float(t), 0, 320] for t in range(40))]
    table(root / "metrics_gpu_device_nvidia_smi_dom_0_server_0.csv", ["time", "gpu", "pwr"], draws)
    return root


ENGINE = ["time [s]", "scheduler_total_time", "gpu_cache_usage_perc", "num_requests_running", "num_requests_waiting"]


def table(path: Path, names: list[str], rows: list[list[Any]]) -> None:
    """A CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
