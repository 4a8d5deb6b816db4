"""Recorded runs of real engines: a folder with what was sent, what came back and how the engine was set.

Two formats are known: per-request timestamps of vLLM (`meta.json`, `requests.jsonl`, perhaps gzipped) and the metrics
of a benchmark run (`metrics_engine*.csv`, a summary in JSON, perhaps nvidia-smi's samples), which lists no requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from control.errors import TraceError
from control.workload.table import Floats, Ints

#: Names of engine settings that a run may state, as InstanceSpec calls them.
SETTINGS = ("max_num_seqs", "max_num_batched_tokens", "block_size", "kv_tokens", "max_model_len", "prefix_caching")


class Requests(NamedTuple):
    """Requests in order of arrival; nan where a time was not recorded."""

    arrival_s: Floats  # since the first one
    input_tokens: Ints
    output_tokens: Ints
    ttft_s: Floats  # queued to first token
    e2e_s: Floats  # queued to last token


class Totals(NamedTuple):
    """What is known of the requests of a run that does not list them."""

    requests: int
    input_tokens: int
    output_tokens: int
    rate: float | None  # requests/s; None: all at once
    context_tokens: float | None  # mean KV tokens of a running request


@dataclass(frozen=True)
class RecordedRun:
    """One run. `measured` holds means and percentiles that the run states itself, named as in tuning.accuracy."""

    path: str
    format: str
    model: str
    gpu: str | None = None  # as the run names it
    memory_gib: float | None = None  # of one GPU
    gpus: int = 1  # tensor parallel
    replicas: int = 1  # data parallel
    version: str | None = None  # of vLLM
    settings: Mapping[str, Any] = field(default_factory=dict)  # of SETTINGS, those that are recorded
    memory_share: float | None = None  # of the GPU memory that the engine may fill
    kv_dtype: str = "auto"
    requests: Requests | None = None
    totals: Totals | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_run(folder: str) -> RecordedRun:
    """The run in `folder`; its format is told by the files in it.

    Raises TraceError with the file and what was expected.
    """
    from control.workload.runs_gpu import is_gpu_run, read_gpu_run
    from control.workload.runs_vllm import is_vllm_run, read_vllm_run

    root = Path(folder)
    if not root.is_dir():
        what = "not a folder" if root.exists() else "no such file or directory"
        raise TraceError(folder, None, f"{what}: expected the folder of a recorded run")
    if is_vllm_run(root):
        return read_vllm_run(root)
    if is_gpu_run(root):
        return read_gpu_run(root)
    raise TraceError(folder, None, "no recorded run: expected requests.jsonl with meta.json, or metrics_engine*.csv")
