"""Runs with a line a request: token counts and the engine's timestamps, settings beside them in meta.json."""

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from control.errors import TraceError
from control.workload.jsonl import Fields, objects
from control.workload.runs import RecordedRun, Requests
from control.workload.table import Floats
from control.workload.text import read_text

#: Names that recorders give to the same thing, the best one first.
INPUT = ("input_toks", "input_tokens", "prompt_tokens", "num_prompt_tokens", "prompt_len", "input_len")
OUTPUT = (
    "output_toks",
    "output_tokens",
    "completion_tokens",
    "generation_tokens",
    "num_generation_tokens",
    "output_len",
)
QUEUED = ("queued_ts", "queued_time", "arrival_ts", "arrival_time", "arrival_s", "arrival", "start_ts", "timestamp")
FIRST = ("first_token_ts", "first_token_time", "first_token_s", "first_token")
LAST = ("last_token_ts", "last_token_time", "finished_ts", "finished_time", "finish_ts", "end_ts", "completed_ts")

#: The engine's settings in meta.json: own name, the names there.
META = {
    "max_num_seqs": ("max_num_seqs",),
    "max_num_batched_tokens": ("max_num_batched_tokens",),
    "block_size": ("block_size",),
    "max_model_len": ("max_model_len",),
    "prefix_caching": ("enable_prefix_caching", "prefix_caching"),
    "kv_tokens": ("kv_cache_size_tokens", "kv_tokens", "kv_cache_tokens"),
}
GPU = ("gpu", "gpu_name", "gpu_type", "hardware", "device", "device_name", "accelerator")


def is_vllm_run(root: Path) -> bool:
    """Whether the folder has a list of requests."""
    return _requests_file(root) is not None


def _requests_file(root: Path) -> Path | None:
    named = [root / name for name in ("requests.jsonl", "requests.jsonl.gz")]
    others = sorted([*root.glob("*.jsonl"), *root.glob("*.jsonl.gz")])
    return next((path for path in [*named, *others] if path.is_file()), None)


def read_vllm_run(root: Path) -> RecordedRun:
    """The run in `root`. Raises TraceError."""
    path = _requests_file(root)
    assert path is not None
    meta = _meta(root)
    kwargs = meta["engine_kwargs"] if isinstance(meta.get("engine_kwargs"), dict) else {}
    both = {**meta, **kwargs}
    requests, notes = _requests(str(path), _text(path))
    version = meta.get("vllm_version") or meta.get("engine_version") or meta.get("version")
    return RecordedRun(
        path=str(root),
        format="requests",
        model=str(_first(both, ("model", "model_id", "served_model")) or root.name),
        gpu=next((str(both[name]) for name in GPU if isinstance(both.get(name), str)), None),
        gpus=_count(both, "tensor_parallel_size") * _count(both, "pipeline_parallel_size"),
        replicas=_count(both, "data_parallel_size"),
        version=None if version is None else str(version),
        settings=_settings(both),
        memory_share=both.get("gpu_memory_utilization"),
        kv_dtype=str(both.get("kv_cache_dtype") or "auto"),
        requests=requests,
        notes=notes if meta else (*notes, "no meta.json: the engine's settings are vLLM's defaults"),
    )


def _meta(root: Path) -> dict[str, Any]:
    path = root / "meta.json"
    if not path.is_file():
        return {}
    try:
        raw = json.loads(read_text(str(path)))
    except ValueError as error:
        raise TraceError(str(path), None, "not JSON: expected one object with engine_kwargs") from error
    if not isinstance(raw, dict):
        raise TraceError(str(path), None, f"{raw!r:.40}: expected one object with engine_kwargs")
    return raw


def _settings(both: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's settings that are recorded; a KV capacity may be stated in blocks."""
    found = {name: _first(both, names) for name, names in META.items()}
    blocks = _first(both, ("num_gpu_blocks_override", "num_gpu_blocks"))
    if found["kv_tokens"] is None and isinstance(blocks, int):
        found["kv_tokens"] = blocks * (found["block_size"] or 16)
    kinds = {name: bool if name == "prefix_caching" else int for name in META}
    return {name: value for name, value in found.items() if type(value) is kinds[name]}


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _count(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if type(value) is int and value > 0 else 1


def _text(path: Path) -> str:
    if path.suffix != ".gz":
        return read_text(str(path))
    try:
        return gzip.decompress(path.read_bytes()).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TraceError(str(path), None, "not gzipped UTF-8 text: expected JSON lines") from error


def _requests(path: str, text: str) -> tuple[Requests, tuple[str, ...]]:
    """All requests that were answered, by arrival, and what was odd."""
    rows, left_out = [], 0
    for line, fields in objects(path, text):
        row = _row(path, line, fields)
        left_out += row is None
        rows += [row] if row is not None else []
    if not rows:
        raise TraceError(path, None, "no answered request: expected input_toks, output_toks and timestamps a line")
    table = np.array(rows)
    table = table[np.argsort(table[:, 0], kind="stable")]
    arrival, first, last = table[:, 0], table[:, 3], table[:, 4]
    notes = (f"{left_out} requests without tokens or an end are left out",) if left_out else ()
    return Requests(
        arrival_s=arrival - arrival[0],
        input_tokens=table[:, 1].astype(np.int64),
        output_tokens=table[:, 2].astype(np.int64),
        ttft_s=_since(arrival, first),
        e2e_s=_since(arrival, last),
    ), notes


def _row(path: str, line: int, fields: Fields) -> tuple[float, ...] | None:
    """Arrival, input, output, first and last token; None for a request that was not answered."""
    queued, given = _first(fields, QUEUED), _first(fields, INPUT)
    for value, names in ((queued, QUEUED), (given, INPUT)):
        if value is None:
            raise TraceError(path, line, f"{names[0]} is missing: expected it in every line")
    values = [queued, given, _first(fields, OUTPUT), _first(fields, FIRST), _first(fields, LAST)]
    numbers = [_number(path, line, value) for value in values]
    if not numbers[2] >= 1.0 or numbers[1] < 1.0 or np.isnan(numbers[4]):
        return None
    return tuple(numbers)


def _number(path: str, line: int, value: Any) -> float:
    if value is None:
        return np.nan
    if type(value) not in (int, float) or not -1e15 < value < 1e15:
        raise TraceError(path, line, f"{value!r:.40}: expected a finite number")
    return float(value)


def _since(start: Floats, end: Floats) -> Floats:
    """Seconds between two columns; nan where they are not of one clock."""
    seconds = end - start
    seconds[(seconds < 0.0) | (seconds > 86_400.0)] = np.nan
    return seconds
