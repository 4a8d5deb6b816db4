"""The response header `endpoint-load-metrics` (ORCA): load without polling. Asked for with
`endpoint-load-metrics-format: TEXT` or `JSON`."""

import time
from collections.abc import Iterator
from typing import Any

import orjson

from control.adapters.metric_text import MOST_FRACTION
from control.adapters.reading import Reading

REQUEST_HEADER, RESPONSE_HEADER = "endpoint-load-metrics-format", "endpoint-load-metrics"
#: Name in the header -> field of a reading.
FIELDS = {
    "kv_cache_usage_perc": "kv_used_fraction",
    "gpu_cache_usage_perc": "kv_used_fraction",
    "num_requests_waiting": "waiting",
    "num_requests_running": "running",
}


def parse_load_header(text: str, taken_s: float | None = None) -> Reading:
    """What a header says; a reading without fields where it says nothing that is understood. Never raises.

    Both forms are taken with or without their word in front: `TEXT named_metrics.kv_cache_usage_perc=0.4, ...` and
    `JSON {"named_metrics": {"kv_cache_usage_perc": 0.4}}`.
    """
    fields: dict[str, float] = {}
    for name, value in entries(text):
        field = FIELDS.get(name.rpartition(".")[2])
        if field is not None and 0 <= value < float("inf"):
            fields[field] = value
    usage = fields.get("kv_used_fraction", 0.0)
    if usage > MOST_FRACTION:
        fields["kv_used_fraction"] = usage / 100
    engine = "vllm" if fields else None
    told: dict[str, Any] = {**fields, "kv_in_percent": usage > MOST_FRACTION}
    return Reading(time.time() if taken_s is None else taken_s, "load header", engine=engine, **told)


def entries(text: str) -> Iterator[tuple[str, float]]:
    """Names and numbers of a header in either form."""
    body = text.strip()
    for word in ("TEXT", "JSON"):
        if body[: len(word)].upper() == word:
            body = body[len(word) :].strip()
    if body.startswith("{"):
        yield from json_entries(body)
        return
    for part in body.split(","):
        name, _, value = part.partition("=")
        try:
            yield name.strip(), float(value)
        except ValueError:
            continue


def json_entries(body: str) -> Iterator[tuple[str, float]]:
    """Names and numbers of a JSON object, and of objects in it."""
    try:
        waiting = [orjson.loads(body)]
    except orjson.JSONDecodeError:
        return
    while waiting:
        for name, value in waiting.pop().items():
            if isinstance(value, dict):
                waiting.append(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield str(name), float(value)
