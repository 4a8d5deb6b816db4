"""Azure LLM inference traces: one request a row with a time and two lengths (Azure Public Dataset)."""

import re

import numpy as np

from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload.build import settle
from control.workload.history import at_least_one
from control.workload.table import Floats, Table, read_table

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)?", re.ASCII)


def read_azure(path: str, text: str) -> Workload:
    """Each row a workflow of one call, kind "chat"; arrival = its time minus the earliest.

    A request that generated nothing counts as one output token and is listed in `problems`.
    Raises TraceError.
    """
    table = read_table(path, text, COLUMNS)
    inputs = table.whole("ContextTokens", low=1)
    outputs, problems = at_least_one(table.whole("GeneratedTokens"), "GeneratedTokens")
    n = len(inputs)
    workflows, calls = empty_workflows(n), empty_calls(n)
    workflows["arrival_s"] = _seconds(table)
    calls["workflow"] = np.arange(n)
    calls["input_tokens"], calls["output_tokens"] = inputs, outputs
    if n and (np.diff(workflows["arrival_s"]) < 0).any():
        problems += ("requests are not in order of TIMESTAMP; sorted",)
    return settle(Workload(path, "azure", workflows, calls, ("chat",), ("default",), ("chat",), 0, 0, (), problems))


def _seconds(table: Table) -> Floats:
    """s since the earliest request, exact to the file's last digit (100 ns)."""
    stamps = [stamp.strip() for stamp in table.columns["TIMESTAMP"]]
    accepted = "a UTC time such as 2023-11-16 18:15:46.6805900"
    for row, stamp in enumerate(stamps):
        if not _TIME.fullmatch(stamp):
            table.refuse(row, "TIMESTAMP", accepted)
    plain = [stamp.removesuffix("Z").removesuffix("+00:00") for stamp in stamps]
    try:
        times = np.array(plain, dtype="datetime64[ns]").astype(np.int64)
    except ValueError:
        table.refuse(next(row for row, stamp in enumerate(plain) if not _is_date(stamp)), "TIMESTAMP", accepted)
    since: Floats = (times - times.min()).astype(np.float64) / 1e9
    return since


def _is_date(stamp: str) -> bool:
    try:
        np.datetime64(stamp, "ns")
    except ValueError:
        return False
    return True
