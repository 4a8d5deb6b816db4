"""Writer of Headway's own trace format; reading the file back gives the same tables (docs/traces.md)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from control.model.workload import Workload


def write_trace(workload: Workload, path: str) -> None:
    """Write `workload` as JSON lines, a workflow a line, in order of arrival. Raises OSError.

    Numbers keep every digit. The draws of a run are not part of a trace.
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in trace_lines(workload))


def trace_lines(workload: Workload) -> Iterator[str]:
    """Each workflow as one line of JSON."""
    names = workload.calls.dtype.names or ()
    columns = {name: workload.calls[name].tolist() for name in names}
    for row in range(len(workload.workflows)):
        yield json.dumps(_workflow(workload, row, columns), ensure_ascii=False, separators=(", ", ": "))


def _workflow(workload: Workload, row: int, columns: dict[str, list[Any]]) -> dict[str, Any]:
    head = workload.workflows[row]
    fields: dict[str, Any] = {
        "id": workload.ids[row] if workload.ids else int(head["id"]),
        "kind": workload.kinds[head["kind"]],
        "tenant": workload.tenants[head["tenant"]],
    }
    for name in ("arrival_s", "slo_s"):
        if not np.isnan(head[name]):
            fields[name] = float(head[name])
    if head["slo_scale"] != 1.0:
        fields["slo_scale"] = float(head["slo_scale"])
    if head["go_on"]:
        fields["go_on"] = 1
    first = int(head["first_call"])
    fields["calls"] = [_call(workload, columns, i) for i in range(first, first + int(head["n_calls"]))]
    return fields


def _call(workload: Workload, columns: dict[str, list[Any]], i: int) -> dict[str, Any]:
    fields = {"stage": workload.steps[columns["step"][i]]}
    for name in ("group", "input_tokens", "output_tokens"):
        fields[name] = columns[name][i]
    if columns["shared_key"][i] >= 0:
        fields["shared_prefix_tokens"] = columns["shared_tokens"][i]
        fields["shared_key"] = columns["shared_key"][i]
    if columns["stream"][i] >= 0:
        fields["stream"] = columns["stream"][i]
        fields["history_tokens"] = columns["history_tokens"][i]
    if columns["tool_s"][i]:
        fields["tool_s"] = columns["tool_s"][i]
    return fields
