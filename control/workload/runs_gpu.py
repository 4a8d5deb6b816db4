"""Benchmark runs of which only totals are known: the engine's metrics once a second and a summary of the client's.

Mean E2E is not in the summary but follows from it: mean TTFT plus mean inter-token latency for each token after the
first, because the latter is a mean over tokens.
"""

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from control.errors import TraceError
from control.workload.runs import RecordedRun, Totals
from control.workload.table import Floats
from control.workload.text import read_text

#: Times of the summary in ms: name there, name here (s).
SUMMARY_MS = {
    "mean_ttft_ms": "ttft_mean_s",
    "median_ttft_ms": "ttft_p50_s",
    "p99_ttft_ms": "ttft_p99_s",
    "mean_tpot_ms": "tpot_mean_s",
    "median_tpot_ms": "tpot_p50_s",
    "mean_itl_ms": "itl_mean_s",
    "mean_e2el_ms": "e2e_mean_s",
    "median_e2el_ms": "e2e_p50_s",
    "p95_e2el_ms": "e2e_p95_s",
    "p99_e2el_ms": "e2e_p99_s",
}
BUSY = 0.5  # running requests above which a sample is of the run itself
MIB_PER_GIB = 1024.0


def is_gpu_run(root: Path) -> bool:
    """Whether the folder has a benchmark's summary or engine metrics."""
    return bool(_one(root, "metrics_engine*.csv") or _summary_file(root))


def _one(root: Path, pattern: str) -> Path | None:
    return next(iter(sorted(root.glob(pattern))), None)


def _summary_file(root: Path) -> Path | None:
    """The JSON file that holds a benchmark's summary."""
    return next((path for path in sorted(root.glob("*.json")) if "total_output_tokens" in read_text(str(path))), None)


def read_gpu_run(root: Path) -> RecordedRun:
    """The run in `root`. Raises TraceError."""
    path = _summary_file(root)
    if path is None:
        raise TraceError(str(root), None, "no summary: expected a JSON file with total_output_tokens, completed, ...")
    summary = _summary(path)
    cache = _cache_config(root)
    engine = _columns(_one(root, "metrics_engine*.csv"))
    seats, noted = _seats(root, engine)
    model = summary.get("model_id") or summary.get("model") or root.name
    old = "scheduler_total_time" in engine or "swap_space_bytes" in cache
    return RecordedRun(
        path=str(root),
        format="totals",
        model=str(model),
        gpu=str(summary["gpu"]) if "gpu" in summary else None,
        memory_gib=_memory_gib(root),
        version="0.6" if old else None,
        settings=_settings(cache, seats),
        memory_share=_number(cache.get("gpu_memory_utilization")),
        kv_dtype=cache.get("cache_dtype", "auto"),
        totals=_totals(path, summary, engine, cache),
        measured=_measured(summary) | _power(root, engine),
        notes=(*noted, *(("the metrics are those of vLLM before 0.8: taken as 0.6",) if old else ())),
    )


def _summary(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(read_text(str(path)))
    except ValueError as error:
        raise TraceError(str(path), None, "not JSON: expected a benchmark's summary") from error
    if not isinstance(raw, dict):
        raise TraceError(str(path), None, "expected one object, a benchmark's summary")
    return raw


def _totals(path: Path, summary: Mapping[str, Any], engine: Mapping[str, Floats], cache: Mapping[str, str]) -> Totals:
    done = summary.get("completed") or summary.get("num_prompts")
    n = _whole(path, "completed", done)
    inputs, outputs = (_whole(path, name, summary.get(name)) for name in ("total_input_tokens", "total_output_tokens"))
    rate = _number(summary.get("request_rate"))
    finite = rate is not None and 0.0 < rate < np.inf
    return Totals(n, inputs, outputs, rate if finite else None, _context(engine, cache))


def _whole(path: Path, name: str, value: object) -> int:
    if type(value) is not int or value < 1:
        raise TraceError(str(path), None, f"{name} = {value!r:.40}: expected a whole number >= 1")
    return value


def _context(engine: Mapping[str, Floats], cache: Mapping[str, str]) -> float | None:
    """Mean KV tokens of a running request, from the samples of KV use."""
    used, running, size = _kv_used(engine), engine.get("num_requests_running"), _kv_tokens(cache)
    if used is None or running is None or size is None or not (running > BUSY).any():
        return None
    busy = running > BUSY
    return float(used[busy].sum() * size / running[busy].sum())


def _kv_used(engine: Mapping[str, Floats]) -> Floats | None:
    """KV use as a share of 1, whether it was recorded as that or in percent."""
    names = ("gpu_cache_usage_perc", "kv_cache_usage_perc")
    used = next((engine[name] for name in names if name in engine), None)
    return None if used is None else used / 100.0 if used.max(initial=0.0) > 1.5 else used


def _kv_tokens(cache: Mapping[str, str]) -> int | None:
    blocks, size = _number(cache.get("num_gpu_blocks")), _number(cache.get("block_size"))
    return int(blocks * size) if blocks and size else None


def _measured(summary: Mapping[str, Any]) -> dict[str, float]:
    """The summary's figures in s and tokens/s."""
    found = {name: summary[key] * 1e-3 for key, name in SUMMARY_MS.items() if _number(summary.get(key)) is not None}
    done, tokens = summary.get("completed"), summary.get("total_output_tokens")
    if "e2e_mean_s" not in found and done and tokens and {"ttft_mean_s", "itl_mean_s"} <= found.keys():
        found["e2e_mean_s"] = found["ttft_mean_s"] + found["itl_mean_s"] * (tokens / done - 1.0)
    duration = _number(summary.get("duration"))
    if duration and tokens:
        found |= {"duration_s": duration, "output_tokens_per_s": tokens / duration}
    return found


def _power(root: Path, engine: Mapping[str, Floats]) -> dict[str, float]:
    """Mean draw of one GPU while the engine was busy, W."""
    samples = _columns(_one(root, "*smi_dom*.csv") or _one(root, "*dmon*.csv"))
    if not {"time", "pwr"} <= samples.keys() or not {"time [s]", "num_requests_running"} <= engine.keys():
        return {}
    running = np.interp(samples["time"], engine["time [s]"], engine["num_requests_running"])
    busy = running > BUSY
    return {"power_w": float(samples["pwr"][busy].mean())} if busy.any() else {}


def _settings(cache: Mapping[str, str], seats: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {"kv_tokens": _kv_tokens(cache), "max_num_seqs": seats}
    size = _number(cache.get("block_size"))
    found["block_size"] = int(size) if size else None
    if cache.get("enable_prefix_caching") in ("True", "False"):
        found["prefix_caching"] = cache["enable_prefix_caching"] == "True"
    return {name: value for name, value in found.items() if value is not None}


def _seats(root: Path, engine: Mapping[str, Floats]) -> tuple[int | None, tuple[str, ...]]:
    """max_num_seqs: the number between underscores at the end of the folder's name, else the most that ever ran."""
    named = re.search(r"_(\d+)_*$", root.resolve().name)
    if named:
        return int(named[1]), ()
    running = engine.get("num_requests_running")
    most = int(running.max(initial=0.0)) if running is not None else 0
    return (most, (f"max_num_seqs is not recorded: at most {most} ran at once",)) if most > 0 else (None, ())


def _cache_config(root: Path) -> dict[str, str]:
    """Labels of vllm:cache_config_info."""
    path = _one(root, "cache_config*")
    line = re.search(r"cache_config_info\{(.*)\}", read_text(str(path))) if path else None
    return dict(re.findall(r'(\w+)="([^"]*)"', line[1])) if line else {}


def _memory_gib(root: Path) -> float | None:
    """Memory of one GPU, from nvidia-smi's samples."""
    path = next((p for p in sorted(root.glob("*smi*.csv")) if "memory.total" in read_text(str(p))[:2000]), None)
    found = re.search(r"(\d+) MiB", read_text(str(path))) if path else None
    return int(found[1]) / MIB_PER_GIB if found else None


def _columns(path: Path | None) -> dict[str, Floats]:
    """Numeric columns of a CSV file, rows with other text (a second header with units) left out."""
    if path is None:
        return {}
    rows = [row for row in csv.reader(read_text(str(path)).splitlines()) if row]
    names, numbers = [name.strip() for name in rows[0]], [_numbers(row) for row in rows[1:]]
    whole = [row for row in numbers if row is not None and len(row) == len(names)]
    return dict(zip(names, np.array(whole).T, strict=True)) if whole else {}


def _numbers(row: list[str]) -> list[float] | None:
    numbers = [_number(cell) for cell in row]
    return None if any(number is None for number in numbers) else [number for number in numbers if number is not None]


def _number(value: object) -> float | None:
    """A number as it may be written; None for what is none. "inf" is one."""
    try:
        return None if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None
