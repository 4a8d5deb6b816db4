"""The engine a recorded run was made on: its costs, its host overhead and its settings."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from control.errors import CatalogueError, SettingError
from control.model.calibrated import Calibrated, as_profile, read_profile
from control.model.catalogue import catalogue
from control.model.fleet import InstanceSpec
from control.model.hardware import gpu_names, model_names, profile
from control.model.names import find_gpu, find_model
from control.model.profile import GIB, Curve, DecodeLine, MixedCost, Profile
from control.workload.runs import RecordedRun


class Host(NamedTuple):
    """Host overhead of an iteration, ms: a fixed part and one for each decoding sequence."""

    base_ms: float
    seq_ms: float


#: By version of vLLM, the first that is newer than the run's. Before 0.8 the scheduler, sampling and detokenisation ran
#: in line with the GPU: what the inter-token latencies of vLLM 0.6 on an H100 (10.72 + 0.235 B ms for Llama-2-7B,
#: 19.47 + 0.330 B for 13B) leave beside weights, KV, prompts and compute. From then on about
#: 1 ms (vLLM 0.19, RTX PRO 6000).
HOSTS: tuple[tuple[tuple[int, int], Host], ...] = (((0, 8), Host(1.0, 0.07)), ((999, 0), Host(1.0, 0.0)))
IN_PROFILE = Host(0.0, 0.0)  # a calibrated profile includes it


class Setup(NamedTuple):
    """What the twin needs to stand for the engine of a run."""

    spec: InstanceSpec
    profile: Profile  # with the host overhead of each sequence in it
    host: Host
    notes: tuple[str, ...]


def set_up(run: RecordedRun, profile_name: str | None) -> Setup:
    """The engine of `run`. `profile_name` is GPU or GPU:MODEL of the catalogue, or the file of a calibrated profile.

    Raises:
        SettingError: neither the run nor the name says which GPU or model, or the catalogue has none such.
        CatalogueError: the file is no profile, or the model does not fit.
    """
    if profile_name and (profile_name.endswith(".json") or Path(profile_name).is_file()):
        return _from_file(run, profile_name)
    gpu, model, notes = _pair(run, profile_name)
    costs = profile(gpu, model, run.gpus, run.settings.get("kv_tokens"))
    host = host_of(run.version)
    spec, more = _spec(run, costs, host.base_ms, {})
    return Setup(spec, with_host(costs, host.seq_ms), host, (*notes, *more))


def _from_file(run: RecordedRun, path: str) -> Setup:
    found: Calibrated = read_profile(path)
    costs = as_profile(found, f"calibrated: {path}")
    spec, notes = _spec(run, costs, IN_PROFILE.base_ms, found.limits)
    return Setup(spec, costs, IN_PROFILE, notes)


def _pair(run: RecordedRun, name: str | None) -> tuple[str, str, tuple[str, ...]]:
    """GPU and model in the catalogue, and what had to be guessed."""
    gpu_part, _, model_part = (name or "").partition(":")
    gpu, notes = _gpu(run, gpu_part)
    wanted = model_part or run.model
    model = find_model(wanted)
    if model is None:
        raise SettingError(f"--profile: model {wanted!r} is not in the catalogue; it has {', '.join(model_names())}")
    return gpu, model, notes


def _gpu(run: RecordedRun, name: str) -> tuple[str, tuple[str, ...]]:
    if name in gpu_names() and run.memory_gib is None:
        return name, ()
    known = find_gpu(name or run.gpu or "", run.memory_gib)
    if known is None and name:
        raise SettingError(f"--profile = {name!r}: no such GPU or file; the catalogue has {', '.join(gpu_names())}")
    if known is not None:
        other = f"the GPU has {run.memory_gib:.1f} GiB: taken as {known}" if run.memory_gib else ""
        return known, (other,) if other and known != name else ()
    for part in (Path(run.path).resolve().name, Path(run.path).resolve().parent.name):
        guessed = find_gpu(part, run.memory_gib)
        if guessed is not None:
            return guessed, (f"the run does not name its GPU: {guessed}, from the name of its folder",)
    raise SettingError(
        f"--profile is missing: {run.path} does not name its GPU; expected one of {', '.join(gpu_names())}"
    )


def host_of(version: str | None) -> Host:
    """Host overhead of a version of vLLM; of the newest where it is not known."""
    found = re.match(r"v?(\d+)\.(\d+)", version or "")
    key = (int(found[1]), int(found[2])) if found else (0, 19)
    return next(host for newer, host in HOSTS if key < newer)


def with_host(costs: Profile, seq_ms: float) -> Profile:
    """`costs` with `seq_ms` more for each decoding sequence of an iteration."""
    if seq_ms == 0.0:
        return costs
    lines = tuple(DecodeLine(_steeper(line.base, seq_ms), line.kv_ms) for line in costs.decode)
    mixed: MixedCost = costs.mixed
    if mixed.tokens is not None:  # the additive form takes it from the decode lines
        mixed = mixed._replace(seq_ms=mixed.seq_ms + seq_ms)
    return replace(costs, decode=lines, mixed=mixed)


def _steeper(curve: Curve, slope: float) -> Curve:
    return Curve(curve.x, tuple(y + slope * x for x, y in zip(curve.x, curve.y, strict=True)))


def _spec(
    run: RecordedRun, costs: Profile, host_ms: float, limits: dict[str, int]
) -> tuple[InstanceSpec, tuple[str, ...]]:
    """The instance: settings as recorded, else the profile's limits, else vLLM's defaults."""
    settings: dict[str, Any] = limits | dict(run.settings)
    notes = [f"{name} is not recorded: vLLM's default" for name in ("max_num_seqs",) if name not in settings]
    if "kv_tokens" not in settings:
        settings["kv_tokens"] = kv_capacity(costs, run)
        notes.append("kv_tokens is not recorded: derived from memory and weights")
    if "max_num_batched_tokens" not in settings:
        settings["max_num_batched_tokens"] = _batched_tokens(run, costs, settings.get("max_num_seqs", 256))
        notes.append(f"max_num_batched_tokens is not recorded: {settings['max_num_batched_tokens']}, vLLM's default")
    if settings["kv_tokens"] < settings.get("block_size", 16):
        raise CatalogueError(f"{costs.model} leaves no KV cache on {run.gpus} x {costs.gpu}: name another --profile")
    spec = InstanceSpec(
        Path(run.path).name, costs.gpu, costs.model, gpus=costs.gpus, host_overhead_ms=host_ms, **settings
    )
    return spec, tuple(notes)


def _batched_tokens(run: RecordedRun, costs: Profile, seats: int) -> int:
    """vLLM's default: 2,048, before 0.8 the whole context, never below the number of sequences."""
    old = host_of(run.version).seq_ms > 0.0
    longest = run.settings.get("max_model_len") or costs.max_model_len
    return max(2048, seats, longest if old else 0)


def kv_capacity(costs: Profile, run: RecordedRun) -> int:
    """KV capacity in tokens with the run's share of the memory; an 8-bit cache holds twice as many."""
    share = run.memory_share if isinstance(run.memory_share, float) else catalogue().scaling["memory_share"]
    free_gib = share * costs.memory_gib * run.gpus - costs.needed_gib
    bytes_per_token = costs.kv_bytes_per_token * (0.5 if "8" in run.kv_dtype else 1.0)
    return max(0, int(free_gib * GIB / bytes_per_token))
