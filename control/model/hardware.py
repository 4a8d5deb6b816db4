"""The hardware catalogue: what any catalogued model costs on any catalogued GPU.

A pair with a fit of its own uses it. Any other pair is scaled (see scaling.py) from the fit of the same
model on one such GPU, else from that of Llama-3.1-8B on the same GPU, or, for a GPU without fits, on the
GPU it is `like`; it is marked "estimated". A profile calibrated on a server goes before all of these.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from control.errors import CatalogueError
from control.model.calibrated import as_profile, read_profile
from control.model.catalogue import Catalogue, Gpu, Model, catalogue
from control.model.costs import CostTable, cost_table
from control.model.power import power_levels
from control.model.profile import Curve, DecodeLine, MixedCost, Profile
from control.model.scaling import lifted_line, scale_factors, scaled_line, scaled_mixed

__all__ = ["CostTable", "Profile", "adopt", "cost_table", "drop", "gpu_names", "model_names", "profile"]

REFERENCE = "Llama-3.1-8B"


#: Profiles adopted in this process, by the name that an instance gives, or by GPU, model and number of GPUs.
_ADOPTED: dict[str | tuple[str, str, int], Profile] = {}


class Costs(NamedTuple):
    """The time part of a profile and where it comes from."""

    decode: tuple[DecodeLine, ...]
    mixed: MixedCost
    provenance: str
    source: str


def gpu_names() -> tuple[str, ...]:
    """Keys of all catalogued GPUs."""
    return tuple(catalogue().gpus)


def model_names() -> tuple[str, ...]:
    """Keys of all catalogued models."""
    return tuple(catalogue().models)


def adopt(found: Profile, name: str | None = None) -> None:
    """Let `found` go before the catalogue in this process: where an instance's profile is `name`, else for its pair."""
    _ADOPTED[name or (found.gpu, found.model, found.gpus)] = found
    profile.cache_clear()


def drop(found: Profile, name: str | None = None) -> None:
    """Take an adoption back."""
    _ADOPTED.pop(name or (found.gpu, found.model, found.gpus), None)
    profile.cache_clear()


@lru_cache(maxsize=256)
def profile(gpu: str, model: str, gpus: int = 1, kv_tokens: int | None = None, name: str | None = None) -> Profile:
    """The profile of `model` on `gpus` tensor-parallel GPUs: an adopted one, else the catalogue's.

    `name` is that of an adopted profile or a file of a calibrated one, which then counts whatever the pair.
    A given `kv_tokens` (a capacity known from elsewhere) waives the check that the weights fit.
    CatalogueError: an unknown GPU or model (with what exists), gpus below 1, weights that do not fit
    (with the GiB needed and available), or a file that is no profile.
    """
    if name is not None and name not in _ADOPTED:
        return as_profile(read_profile(name), f"calibrated: {name}")
    adopted = _ADOPTED.get((gpu, model, gpus) if name is None else name)
    return _catalogued(gpu, model, gpus, kv_tokens) if adopted is None else adopted


def _catalogued(gpu: str, model: str, gpus: int, kv_tokens: int | None) -> Profile:
    """The catalogue's profile; checks as in `profile`."""
    book = catalogue()
    card, sizes = book.gpu(gpu), book.model(model)
    if gpus < 1:
        raise CatalogueError(f"gpus = {gpus}: a replica takes at least 1 GPU")
    found = _assemble(book, gpu, model, gpus, card, sizes)
    if kv_tokens is None and found.kv_tokens() < 1:
        raise CatalogueError(
            f"{model} does not fit on {gpus} x {gpu}: its weights need {found.needed_gib:.1f} GiB with the "
            f"reserve, {found.available_gib():.1f} GiB are available; take more GPUs or give kv_tokens"
        )
    return found


def _assemble(book: Catalogue, gpu: str, model: str, gpus: int, card: Gpu, sizes: Model) -> Profile:
    knee = book.entries["knee"].get((gpu, model), {})
    quantised = book.entries["quantised"].get((gpu, model), {}) if gpus == 1 else {}
    costs = _costs(book, gpu, model, gpus, quantised)
    return Profile(
        gpu=gpu,
        model=model,
        gpus=gpus,
        provenance=costs.provenance,
        source=costs.source,
        decode=costs.decode,
        mixed=costs.mixed,
        memory_gib=card.memory_gib,
        memory_share=book.scaling["memory_share"],
        reserved_gib=book.scaling["reserved_gib"],
        weight_bytes=quantised.get("weight_bytes", sizes.weight_bytes),
        kv_bytes_per_token=sizes.kv_bytes_per_token,
        max_model_len=sizes.max_model_len,
        tdp_w=card.tdp_w,
        power=power_levels(card),
        kv_link_gb_s=knee.get("kv_link_gb_s", card.kv_link_gb_s),
        kv_link_ms=knee.get("kv_link_ms", book.scaling["kv_link_ms"]),
        send_ms=knee.get("send_ms", 0.0),
        send_token_ms=knee.get("send_token_ms", 0.0),
        cap_measured=bool(knee.get("cap_measured")) and gpus == 1,
    )


def _costs(book: Catalogue, gpu: str, model: str, gpus: int, quantised: Mapping[str, Any]) -> Costs:
    """Own fit if there is one, else scaled; a quantised entry sets the decode iteration as measured."""
    own = _fitted(book, gpu, model)
    if own is not None and gpus == 1:
        return own
    base_gpu, base_model = (gpu, model) if own else (book.gpu(gpu).like or gpu, REFERENCE)
    base = own or _fitted(book, base_gpu, base_model)
    assert base is not None  # every `like` GPU has the reference fit; a test walks all pairs
    weight_bytes = quantised.get("weight_bytes", book.model(model).weight_bytes)
    factors = scale_factors(book, (base_gpu, base_model), (gpu, model), gpus, weight_bytes)
    sizes = book.model(model)
    decode = tuple(scaled_line(line, factors, sizes) for line in base.decode)
    if quantised:
        decode = tuple(lifted_line(line, quantised["decode_base_ms"]) for line in decode)
    parallel = f" x {gpus}" if gpus > 1 else ""
    source = quantised.get("source", f"scaled from {base_model} on {base_gpu} to {model} on {gpu}{parallel}")
    return Costs(decode, scaled_mixed(base.mixed, factors, sizes), "estimated", source)


def _fitted(book: Catalogue, gpu: str, model: str) -> Costs | None:
    """The fit of this very pair on one GPU, None if the catalogue has none."""
    if (gpu, model) in book.entries["knee"]:
        row = book.entries["knee"][gpu, model]
        lines = tuple(DecodeLine(Curve((0.0, 1.0), (a, a + b)), kv) for a, b, kv in row["lines"])
        mixed = MixedCost(None, row["mixed_area_ms"], base_ms=row["mixed_base_ms"], token_ms=row["mixed_token_ms"])
        return Costs(lines, mixed, row["provenance"], row["source"])
    if (gpu, model) not in book.entries["pair"]:
        return None
    row, knots = book.entries["pair"][gpu, model], book.curves
    base = Curve.from_slopes(row["decode_base_ms"], knots["sequences"], row["decode_slopes_ms"])
    tokens = Curve.from_slopes(row["mixed_base_ms"], knots["tokens"], row["mixed_slopes_ms"])
    kv_ms, area_ms, seq_ms, ctx_ms = row["mixed_rest_ms"]
    mixed = MixedCost(tokens, area_ms, kv_ms, seq_ms, ctx_ms)
    return Costs((DecodeLine(base, row["decode_kv_ms"]),), mixed, row["provenance"], row["source"])
