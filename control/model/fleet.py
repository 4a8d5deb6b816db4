"""A fleet: named instances, each one model replica on one kind of GPU, read from TOML or built in.

A fleet file has `name` and one `[[instance]]` table for each kind of instance: `gpu` and `model` (catalogue
keys), `count`, and any other field of InstanceSpec. `profile` names the file of a calibrated profile, relative to
the fleet file; it fills in what the table leaves out: gpu, model, gpus, KV capacity, limits and host overhead.
Instances are named after the GPU and numbered, "h100-0", "h100-1"; `name` sets another prefix, or, without
`count`, the whole name.
"""

import tomllib
from collections import Counter
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from control.errors import CatalogueError, FleetError, SettingError
from control.model.calibrated import read_profile
from control.model.catalogue import suggestion
from control.model.fleet_checks import checked_table, refuse_unknown
from control.model.hardware import profile
from control.model.power import checked_cap
from control.model.profile import Profile
from control.model.scaling import stretched


@dataclass(frozen=True)
class InstanceSpec:
    """One model replica. Engine settings default to vLLM's."""

    name: str
    gpu: str  # catalogue key, e.g. "H100"
    model: str  # catalogue key, e.g. "Llama-3.1-8B"
    gpus: int = 1  # tensor-parallel GPUs of this replica
    role: str = "mixed"  # mixed | prefill | decode
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    block_size: int = 16  # tokens a KV block
    watermark: float = 0.01  # share of KV blocks kept free on admission
    prefix_caching: bool = True
    host_overhead_ms: float = 1.0  # added to each iteration; a constant of the engine version
    kv_tokens: int | None = None  # KV capacity, tokens; None: derived from the catalogue
    max_model_len: int | None = None  # context limit, tokens; None: the model's, cut to the KV capacity
    power_cap_w: float | None = None  # W per GPU; None: uncapped
    url: str | None = None  # base URL of an OpenAI-compatible server; None: simulated
    served_model: str | None = None  # the model's name there; None: the first that the server lists
    scheduling_policy: str = "priority"  # of the server: fcfs | priority; a server that refuses a priority gets none
    window: int | None = None  # calls in flight there at most; None: max_num_seqs
    power: str | None = None  # where its power is read: "nvml", or the URL of an agent or exporter; None: estimated
    power_index: int = 0  # its first GPU there
    prefill_scale: float = 1.0  # its prefill takes so many times what the profile says; learned from live answers
    decode_scale: float = 1.0  # same, its decode
    profile: str | None = None  # file of a calibrated profile; None: adopted for the pair, else the catalogue's


@dataclass(frozen=True)
class Fleet:
    """Instances under one scheduler."""

    name: str
    instances: tuple[InstanceSpec, ...]


KEYS = ["count", *(field.name for field in fields(InstanceSpec))]


def fleet_names() -> tuple[str, ...]:
    """Names of the built-in fleets, sorted."""
    folder = files("control.model").joinpath("fleets")
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_fleet(name_or_path: str) -> Fleet:
    """The fleet of a TOML file (ends in .toml, or is a file), else the built-in fleet of this name.

    FleetError names the file, the key and the value, and what would have been accepted.
    """
    if name_or_path.endswith(".toml") or Path(name_or_path).is_file():
        try:
            text = Path(name_or_path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise FleetError(f"{name_or_path}: cannot be read: {reason}") from error
        return parse_fleet(text, name_or_path)
    names = fleet_names()
    if name_or_path not in names:
        hint = suggestion(name_or_path, list(names))
        raise FleetError(
            f"fleet {name_or_path!r} is neither a file nor built in{hint}; built in are {', '.join(names)}"
        )
    return parse_fleet(_builtin_text(name_or_path), f"{name_or_path}.toml")


def parse_fleet(text: str, where: str) -> Fleet:
    """The fleet described by TOML `text`; `where` is the file that FleetError names."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FleetError(f"{where}: not valid TOML: {error}") from error
    refuse_unknown(raw, ["name", "instance"], where)
    name, tables = raw.get("name", Path(where).stem), raw.get("instance", [])
    if not isinstance(name, str) or not name:
        raise FleetError(f"{where}: name = {name!r}: a non-empty string is accepted")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise FleetError(f"{where}: instance: one or more [[instance]] tables are accepted")
    specs = _instances(tables, where)
    if not specs:
        raise FleetError(f"{where}: instance: the fleet is empty; at least one [[instance]] is needed")
    return Fleet(name, specs)


def profile_of(spec: InstanceSpec) -> Profile:
    """What an instance costs. CatalogueError as hardware.profile."""
    found = profile(spec.gpu, spec.model, spec.gpus, spec.kv_tokens, spec.profile)
    scales = spec.prefill_scale, spec.decode_scale
    return found if scales == (1.0, 1.0) else stretched(found, *scales)


def capacity(spec: InstanceSpec) -> tuple[int, int]:
    """KV capacity and context limit of an instance, both in tokens; the limit never exceeds the capacity.

    CatalogueError: an unknown GPU or model, or weights that do not fit and no `kv_tokens`.
    """
    found = profile_of(spec)
    kv_tokens = found.kv_tokens() if spec.kv_tokens is None else spec.kv_tokens
    longest = found.max_model_len if spec.max_model_len is None else spec.max_model_len
    return kv_tokens, min(longest, kv_tokens)


def _builtin_text(name: str) -> str:
    return files("control.model").joinpath("fleets", f"{name}.toml").read_text("utf-8")


def _instances(tables: list[dict[str, Any]], where: str) -> tuple[InstanceSpec, ...]:
    """All instances in file order, numbered per prefix across tables."""
    specs: list[InstanceSpec] = []
    numbered: Counter[str] = Counter()
    for number, table in enumerate(tables, 1):
        at = f"{where}: instance {number}"
        table = filled(table, Path(where).parent, at)
        checked = checked_table(table, KEYS, at)
        values = {key: value for key, value in checked.items() if key not in ("name", "count")}
        for name in _names(table, numbered):
            specs.append(InstanceSpec(name=name, **values))
        _check_hardware(specs[-1], at)
    repeated = [name for name, times in Counter(spec.name for spec in specs).items() if times > 1]
    if repeated:
        raise FleetError(f"{where}: name = {repeated[0]!r}: given to two instances; names must differ")
    return tuple(specs)


def filled(table: dict[str, Any], folder: Path, at: str) -> dict[str, Any]:
    """The table with what its calibrated profile, if it names one, knows and it does not say itself."""
    if "profile" not in table:
        return table
    if not isinstance(table["profile"], str) or not table["profile"]:
        raise FleetError(f"{at}: profile = {table['profile']!r}: the file of a calibrated profile is accepted")
    path = str((folder / table["profile"]).resolve())
    try:
        found = read_profile(path)
    except CatalogueError as error:
        raise FleetError(f"{at}: profile: {error}") from error
    known = {"gpu": found.gpu, "model": found.model, "gpus": found.gpus, "host_overhead_ms": 0.0, **found.limits}
    return {**known, **table, "profile": path}


def _names(table: dict[str, Any], numbered: Counter[str]) -> list[str]:
    """Names of the instances of one table; counts them in `numbered`."""
    if "name" in table and "count" not in table:
        return [table["name"]]
    prefix, count = table.get("name", table["gpu"].lower()), table.get("count", 1)
    first = numbered[prefix]
    numbered[prefix] += count
    return [f"{prefix}-{i}" for i in range(first, first + count)]


def _check_hardware(spec: InstanceSpec, at: str) -> None:
    """The model fits, one block at least is free and the GPU takes the cap."""
    try:
        kv_tokens, _ = capacity(spec)
        checked_cap(profile_of(spec), spec.power_cap_w)
    except (CatalogueError, SettingError) as error:
        raise FleetError(f"{at}: {error}") from error
    if kv_tokens < spec.block_size:
        raise FleetError(f"{at}: kv_tokens = {kv_tokens}: at least one block of {spec.block_size} is accepted")
