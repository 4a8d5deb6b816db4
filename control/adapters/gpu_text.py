"""GPU exporters' Prometheus texts as GpuReadings: our own agent's, dcgm-exporter's, nvidia_gpu_exporter's."""

from typing import Any

from control.adapters.exposition import Sample, Samples
from control.adapters.gpu_names import GPU_DIALECTS, GpuDialect
from control.adapters.reading import GpuReading

#: Parts of one GPU that share it (MIG): memory adds up, everything else is said of the whole GPU by each.
PART_LABEL = "gpu_i_id"
#: One GPU: its host, and its UUID or, without one, its number.
GpuKey = tuple[str, str]
Values = dict[str, dict[str, float]]


def dialect_of(samples: Samples) -> GpuDialect | None:
    """The exporter whose names the text uses; None where it is of none."""
    for dialect in GPU_DIALECTS:
        if any(True for _ in samples.starting_with(dialect.prefix)):
            return dialect
    return None


def read_gpus(samples: Samples, dialect: GpuDialect) -> tuple[GpuReading, ...]:
    """Every GPU of a text, in order of its number."""
    values: dict[GpuKey, Values] = {}
    labels: dict[GpuKey, dict[str, str]] = {}
    for sample in samples.by_name.get(dialect.info or "", []):
        note(labels, sample, dialect)
    for quantity in dialect.quantities:
        _, found = samples.first(quantity) or ("", [])
        for sample in found:
            key = note(labels, sample, dialect)
            part = lower(sample).get(PART_LABEL, "")
            values.setdefault(key, {}).setdefault(quantity.field, {})[part] = sample.value
    gpus = [gpu_of(labels[key], values.get(key, {}), dialect) for key in labels]
    return tuple(sorted(gpus, key=lambda gpu: (gpu.index is None, gpu.index or 0)))


def note(labels: dict[GpuKey, dict[str, str]], sample: Sample, dialect: GpuDialect) -> GpuKey:
    """The GPU a sample is of; its labels are kept, so that a number and a name said once hold for all."""
    here = lower(sample)
    key = (here.get("hostname", ""), here.get(dialect.uuid_label) or here.get(dialect.number_label, ""))
    labels[key] = here | labels.get(key, {})
    return key


def lower(sample: Sample) -> dict[str, str]:
    """The labels with names in lower case: dcgm-exporter writes UUID, older releases uuid."""
    return {name.lower(): value for name, value in sample.labels.items()}


def gpu_of(labels: dict[str, str], values: Values, dialect: GpuDialect) -> GpuReading:
    """One GPU of its labels and figures."""
    figures: dict[str, Any] = {field: whole(field, parts) for field, parts in values.items()}
    free, reserved = figures.pop("memory_free_mib", None), figures.pop("memory_reserved_mib", 0.0)
    used = figures.get("memory_used_mib")
    if "memory_total_mib" not in figures and free is not None and used is not None:
        figures["memory_total_mib"] = used + free + reserved
    index = labels.get(dialect.number_label, "")
    return GpuReading(
        index=int(index) if index.isdigit() else None,
        uuid=labels.get(dialect.uuid_label) or None,
        name=labels.get(dialect.name_label) or None,
        **figures,
    )


def whole(field: str, parts: dict[str, float]) -> float:
    """A figure of the whole GPU."""
    return sum(parts.values()) if field.startswith("memory") else max(parts.values())
