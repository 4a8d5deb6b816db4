"""Prometheus texts as samples by name."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from control.adapters.faults import MetricsError
from control.adapters.names import Name, Quantity

EXPECTED = "expected a metrics text with lines like 'name{label=\"value\"} 1.0'"
#: Relays rewrite the colon of an engine's names, and Ray puts its own prefix before it.
ENGINE_PREFIX = re.compile(r"^(?:ray_)?(vllm|sglang)[:_]")
#: What prometheus_client raises on text that is none.
MALFORMED = (ValueError, IndexError, KeyError, AttributeError, TypeError)


@dataclass(frozen=True)
class Sample:
    """One finite value with its labels."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Samples:
    """All samples of a text by name; engines' names are written `engine:name`."""

    by_name: dict[str, list[Sample]] = field(default_factory=dict)
    help: dict[str, str] = field(default_factory=dict)

    def first(self, wanted: Quantity, prefix: str = "") -> tuple[str, list[Sample]] | None:
        """The first name that is there, with or without `_total`, and its samples in our unit; None where none is."""
        for name in wanted.names:
            for spelling in (prefix + name.name, f"{prefix}{name.name}_total"):
                found = self.by_name.get(spelling, [])
                if wanted.label is not None:
                    key, value = wanted.label
                    found = [sample for sample in found if sample.labels.get(key) == value]
                if found:
                    return name.name, found if name.scale == 1.0 else [in_our_unit(sample, name) for sample in found]
        return None

    def starting_with(self, prefix: str) -> Iterator[Sample]:
        """Every sample whose name starts so."""
        for name, samples in self.by_name.items():
            if name.startswith(prefix):
                yield from samples


def in_our_unit(sample: Sample, name: Name) -> Sample:
    """A sample with its value scaled."""
    return Sample(sample.labels, sample.value * name.scale)


def parse_samples(text: str, where: str) -> Samples:
    """The samples of a Prometheus or OpenMetrics text; values that are not finite count as not there.

    Raises:
        MetricsError: the text is empty or none of these.
    """
    families = parsed(text, where)
    if not families:
        raise MetricsError(where, f"no metrics in it: {EXPECTED}")
    return gathered(families)


def parsed(text: str, where: str) -> list[Metric]:
    """The families of a text; OpenMetrics is tried where its end mark stands, for it alone knows exemplars.

    Raises:
        MetricsError: it is neither.
    """
    if text.rstrip().endswith("# EOF"):
        with suppress(*MALFORMED):
            return list(parse_openmetrics(text.rstrip() + "\n"))  # type: ignore[no-untyped-call]
    try:
        return list(parse_prometheus(text))
    except MALFORMED as error:
        raise MetricsError(where, f"{first_bad_line(text)}: {EXPECTED}") from error


def gathered(families: Iterable[Metric]) -> Samples:
    """Samples and help texts of parsed families by name."""
    samples = Samples()
    for family in families:
        name = ENGINE_PREFIX.sub(r"\1:", family.name)
        samples.help[name] = samples.help[f"{name}_total"] = family.documentation
        for sample in family.samples:
            if math.isfinite(sample.value):
                key = ENGINE_PREFIX.sub(r"\1:", sample.name)
                samples.by_name.setdefault(key, []).append(Sample(sample.labels, float(sample.value)))
    return samples


def first_bad_line(text: str) -> str:
    """The first line that is no sample by itself, with its number, for a message."""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            list(parse_prometheus(line + "\n"))
        except MALFORMED:
            return f"line {number}: {shortened(line)!r}"
    return "its lines do not fit together"


def shortened(line: str) -> str:
    """A line short enough for a message."""
    return line if len(line) <= 60 else line[:57] + "..."
