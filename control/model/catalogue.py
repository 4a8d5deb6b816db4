"""The shipped hardware catalogue (catalogue.toml) as typed rows, read once a process."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

from control.errors import CatalogueError

Row = TypeVar("Row")


@dataclass(frozen=True)
class Gpu:
    """Datasheet figures of one GPU; optional ones override the common power model."""

    memory_gb_s: float
    memory_gib: float
    bf16_tflops: float  # dense
    tdp_w: float
    kv_link_gb_s: float
    idle_w: float | None = None
    like: str | None = None  # GPU whose fits are scaled when this one has none
    decode_share: tuple[float, float] | None = None  # of the TDP, at 1 and at 256 sequences
    prefill_share: float | None = None  # of the TDP


@dataclass(frozen=True)
class Model:
    """Sizes of one model in bf16."""

    parameters: float
    active_parameters: float  # parameters one token meets
    kv_bytes_per_token: int
    attention_width: int  # layers x query heads x head size
    max_model_len: int  # tokens
    expert_parameters: float = 0.0
    experts: int = 0
    experts_per_token: int = 0

    @property
    def weight_bytes(self) -> float:
        """Bytes of the bf16 weights."""
        return 2.0 * self.parameters


class Catalogue(NamedTuple):
    """All GPUs and models by key; `entries` holds the fitted pairs by kind and (GPU, model)."""

    gpus: Mapping[str, Gpu]
    models: Mapping[str, Model]
    entries: Mapping[str, Mapping[tuple[str, str], Mapping[str, Any]]]  # kinds: pair, knee, quantised
    curves: Mapping[str, list[float]]
    scaling: Mapping[str, float]
    power: Mapping[str, float]
    capped: Mapping[str, list[float]]

    def gpu(self, key: str) -> Gpu:
        """The GPU of this key; CatalogueError lists what exists."""
        return _known(self.gpus, key, "GPU")

    def model(self, key: str) -> Model:
        """The model of this key; CatalogueError lists what exists."""
        return _known(self.models, key, "model")


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """The shipped catalogue, parsed on first use."""
    raw = tomllib.loads(files("control.model").joinpath("catalogue.toml").read_text("utf-8"))
    return Catalogue(
        gpus={key: _gpu(row) for key, row in raw["gpu"].items()},
        models={key: Model(**row) for key, row in raw["model"].items()},
        entries={
            kind: {(row["gpu"], row["model"]): row for row in raw[kind]} for kind in ("pair", "knee", "quantised")
        },
        curves=raw["curves"],
        scaling=raw["scaling"],
        power=raw["power"],
        capped=raw["capped"],
    )


def suggestion(word: str, known: Mapping[str, object] | list[str]) -> str:
    """A trailing `, did you mean ...?` for the closest known word, else nothing."""
    lowered = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), lowered, n=1)
    return f", did you mean {lowered[close[0]]}?" if close else ""


def _gpu(row: dict[str, Any]) -> Gpu:
    share = row.get("decode_share")
    return Gpu(**{**row, "decode_share": tuple(share) if share else None})


def _known(rows: Mapping[str, Row], key: str, what: str) -> Row:
    if key not in rows:
        raise CatalogueError(f"{what} {key!r} is not in the catalogue{suggestion(key, rows)}; it has {', '.join(rows)}")
    return rows[key]
