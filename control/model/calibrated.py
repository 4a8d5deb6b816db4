"""Calibrated profiles: a measured server as a file that people can read, and the Profile it stands for.

The file is JSON with `headway_profile` = 1. `decode` and `mixed` hold the coefficients of the iteration cost (see
profile.py), host overhead included: an instance that runs on the file has none of its own. A curve is `[base_ms,
slope_ms]` where it is a line, else `knots` and `ms`. Power that nobody measured comes from the catalogue where it knows
the GPU; else it counts as 0 W, so such an instance takes no cap and adds nothing to the energy books.

`fit.request_ms` is what a request costs its server outside the iterations (HTTP, tokenisation). It is no coefficient of
theirs, but every call waits for it, so the Profile has it in the iterations that prefill: once a call, but once more
for every further chunk of a prompt that takes several.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from control.errors import CatalogueError
from control.model.calibrated_fields import LABEL, Fields, curve_fields, read_curve
from control.model.catalogue import Gpu, Model, catalogue
from control.model.power import power_levels
from control.model.profile import Curve, DecodeLine, MixedCost, PowerLevels, Profile

VERSION = 1
UNKNOWN_POWER = PowerLevels(0.0, 0.0, 0.0, 0.0)
LIMITS = ("kv_tokens", "block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len")

#: Coefficients behind the curve of a mixed iteration, ms: name in the file, name in MixedCost.
MIXED_REST = (("c2_ms", "kv_ms"), ("c3_ms", "area_ms"), ("c4_ms", "seq_ms"), ("c5_ms", "ctx_ms"))


@dataclass(frozen=True)
class Power:
    """Draw of one GPU, W."""

    tdp_w: float
    idle_w: float
    decode_one_w: float  # decoding 1 sequence
    decode_many_w: float  # decoding 256 sequences or more
    prefill_w: float


@dataclass(frozen=True)
class Calibrated:
    """What a calibration measured of one server. `fit` and `intervals` are as tuning.calibrate states them."""

    gpu: str
    model: str
    decode: DecodeLine
    mixed: MixedCost
    gpus: int = 1
    engine: str = "vllm"
    engine_version: str = ""
    date: str = ""  # ISO 8601, UTC
    limits: dict[str, int] = field(default_factory=dict)  # of LIMITS, those that are known
    power: Power | None = None
    fit: dict[str, Any] = field(default_factory=dict)  # errors by regime, as shares
    intervals: dict[str, list[float]] = field(default_factory=dict)  # coefficient -> [low, high], 90 %
    notes: list[str] = field(default_factory=list)


def read_profile(path: str) -> Calibrated:
    """The calibrated profile in the file `path`. CatalogueError names the file, the key and what is accepted."""
    try:
        raw = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CatalogueError(f"{path}: not JSON: expected a profile that 'headway calibrate' wrote") from error
    fields = Fields(path, raw)
    if fields.raw.get("headway_profile") != VERSION:
        found = fields.raw.get("headway_profile")
        raise CatalogueError(f"{path}: headway_profile = {found!r}: version {VERSION} is accepted")
    return _calibrated(fields)


def _calibrated(fields: Fields) -> Calibrated:
    decode, mixed, engine = fields.table("decode"), fields.table("mixed"), fields.table("engine", {})
    limits, fit = fields.table("limits", {}), fields.table("fit", {})
    fit.number("request_ms", 0.0)
    return Calibrated(
        gpu=fields.text("gpu", LABEL),
        model=fields.text("model"),
        gpus=fields.whole("gpus", 1),
        engine=engine.text("name", default="vllm"),
        engine_version=engine.text("version", default=""),
        date=fields.text("date", default=""),
        decode=DecodeLine(read_curve(decode, "a0_ms", "a1_ms"), decode.number("a2_ms")),
        mixed=_mixed(mixed),
        limits={name: limits.whole(name) for name in LIMITS if limits.raw.get(name) is not None},
        power=_power(fields),
        fit=fit.raw,
        intervals=fields.table("intervals", {}).raw,
        notes=[str(note) for note in fields.raw.get("notes", [])],
    )


def _mixed(table: Fields) -> MixedCost:
    rest = {name: table.number(key, 0.0) for key, name in MIXED_REST}
    return MixedCost(tokens=read_curve(table, "c0_ms", "c1_ms"), **rest)


def _power(fields: Fields) -> Power | None:
    if fields.raw.get("power") is None:
        return None
    table = fields.table("power")
    names = ("tdp_w", "idle_w", "decode_one_w", "decode_many_w", "prefill_w")
    watts = Power(*(table.number(name) for name in names))
    if watts.tdp_w <= 0.0:
        raise CatalogueError(f"{table.where}.tdp_w = 0: a number above 0 is accepted, or power = null")
    return watts


def as_fields(found: Calibrated) -> dict[str, Any]:
    """The profile as the object that the file holds."""
    rest = {key: getattr(found.mixed, name) for key, name in MIXED_REST}
    assert found.mixed.tokens is not None  # a calibration fits the plain form
    return {
        "headway_profile": VERSION,
        "gpu": found.gpu,
        "model": found.model,
        "gpus": found.gpus,
        "engine": {"name": found.engine, "version": found.engine_version},
        "date": found.date,
        "host_overhead": "included",
        "decode": curve_fields(found.decode.base, "a0_ms", "a1_ms") | {"a2_ms": found.decode.kv_ms},
        "mixed": curve_fields(found.mixed.tokens, "c0_ms", "c1_ms") | rest,
        "limits": {name: found.limits.get(name) for name in LIMITS},
        "power": vars(found.power) if found.power else None,
        "fit": found.fit,
        "intervals": found.intervals,
        "notes": found.notes,
    }


def write_profile(found: Calibrated, path: str) -> None:
    """Write the file whole or not at all. CatalogueError where it cannot be written."""
    target = Path(path)
    partial = target.with_name(target.name + ".part")
    try:
        partial.write_text(json.dumps(as_fields(found), indent=2) + "\n", "utf-8")
        partial.replace(target)
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be written: {error.strerror or error}") from error


def as_profile(found: Calibrated, source: str) -> Profile:
    """The Profile that the engine and the twin run on; `source` says where it comes from, in one line."""
    book = catalogue()
    card, sizes = book.gpus.get(found.gpu), book.models.get(found.model)
    power, tdp_w = _levels(found.power, card)
    return Profile(
        gpu=found.gpu,
        model=found.model,
        gpus=found.gpus,
        provenance="calibrated",
        source=source,
        decode=(found.decode,),
        mixed=_with_request(found),
        memory_gib=card.memory_gib if card and sizes else 0.0,  # unknown: the KV capacity must be given
        memory_share=book.scaling["memory_share"],
        reserved_gib=book.scaling["reserved_gib"],
        weight_bytes=sizes.weight_bytes if sizes else 0.0,
        kv_bytes_per_token=sizes.kv_bytes_per_token if sizes else 1,
        max_model_len=_longest(found, sizes),
        tdp_w=tdp_w,
        power=power,
        kv_link_gb_s=card.kv_link_gb_s if card else 1.0,
        kv_link_ms=book.scaling["kv_link_ms"],
    )


def _with_request(found: Calibrated) -> MixedCost:
    """Iterations that prefill with what a request costs outside of them."""
    ms, curve = float(found.fit.get("request_ms") or 0.0), found.mixed.tokens
    assert curve is not None
    return found.mixed._replace(tokens=Curve(curve.x, tuple(y + ms for y in curve.y)))


def _longest(found: Calibrated, sizes: Model | None) -> int:
    """Context limit in tokens: as the server said, else the model's, else what its KV holds."""
    known = found.limits.get("max_model_len")
    return known or (sizes.max_model_len if sizes else found.limits.get("kv_tokens", 1))


def _levels(watts: Power | None, card: Gpu | None) -> tuple[PowerLevels, float]:
    """Power levels and TDP in W: measured, else the catalogue's, else 0 W."""
    if watts is not None:
        shares = (w / watts.tdp_w for w in (watts.decode_one_w, watts.decode_many_w, watts.prefill_w))
        return PowerLevels(watts.idle_w, *shares), watts.tdp_w
    return (power_levels(card), card.tdp_w) if card else (UNKNOWN_POWER, 0.0)
