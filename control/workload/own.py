"""Reader of Headway's own trace format: JSON lines, a workflow a line (docs/traces.md)."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from control.errors import TraceError
from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload import jsonl
from control.workload.build import dense_streams, number, settle
from control.workload.prompts import step_name
from control.workload.table import MOST

WORKFLOW_KEYS = ("id", "kind", "tenant", "arrival_s", "slo_s", "slo_scale", "go_on", "calls")
CALL_KEYS = (
    "stage",
    "group",
    "input_tokens",
    "output_tokens",
    "shared_prefix_tokens",
    "shared_key",
    "stream",
    "history_tokens",
    "tool_s",
)


#: Shared keys keep the numbers the file gives them, so the largest bounds the tables of a run.
_MOST_KEY = 999_999


class _Call(NamedTuple):
    workflow: int
    group: int
    stage: str
    kind: str
    input_tokens: int
    output_tokens: int
    shared_key: int  # -1: none, or one per (kind, stage)
    shared_tokens: int
    stream: int
    history_tokens: int
    tool_s: float


class _Head(NamedTuple):
    id: int | str
    kind: str
    tenant: str
    arrival_s: float
    slo_s: float
    slo_scale: float
    go_on: int


def read_own(path: str, text: str) -> Workload:
    """The workflows of a trace in Headway's format. Raises TraceError."""
    heads: list[_Head] = []
    calls: list[_Call] = []
    lines: list[int] = []
    for line, fields in jsonl.objects(path, text):
        jsonl.only(path, line, fields, "a workflow", WORKFLOW_KEYS)
        head = _head(path, line, fields, len(heads))
        calls += _calls(path, line, fields, head.kind, len(heads))
        heads.append(head)
        lines.append(line)
    _check_ids(path, heads, lines)
    _check_times(path, heads, lines)
    return settle(_tables(path, heads, calls))


def _head(path: str, line: int, fields: jsonl.Fields, row: int) -> _Head:
    def number(name: str, default: float, above: bool) -> float:
        if name not in fields:
            return default
        return jsonl.real(path, line, fields, name, low=0, above=above)

    def name(key: str, default: str) -> str:
        return jsonl.label(path, line, fields, key) if key in fields else default

    return _Head(
        _identity(path, line, fields, row),
        name("kind", "chat"),
        name("tenant", "default"),
        number("arrival_s", np.nan, above=False),
        number("slo_s", np.nan, above=True),
        number("slo_scale", 1.0, above=True),
        jsonl.whole(path, line, fields, "go_on", low=0, high=1) if "go_on" in fields else 0,
    )


def _identity(path: str, line: int, fields: jsonl.Fields, row: int) -> int | str:
    if "id" not in fields:
        return row
    if isinstance(fields["id"], str):
        return jsonl.label(path, line, fields, "id")
    return jsonl.whole(path, line, fields, "id", low=0, high=2**63 - 1)


def _calls(path: str, line: int, fields: jsonl.Fields, kind: str, row: int) -> list[_Call]:
    given = fields.get("calls")
    if not isinstance(given, list) or not given:
        what = f"calls = {jsonl.shorten(given)}: expected a list of at least one call"
        raise TraceError(path, line, what)
    calls = [_call(path, line, call, kind, row, place) for place, call in enumerate(given)]
    groups = [call.group for call in calls]
    if groups != sorted(groups):
        raise TraceError(path, line, f"group = {jsonl.shorten(groups)}: expected groups in rising order")
    if groups[0] == 0 and groups[-1] < len(set(groups)):
        return calls
    dense = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    return [call._replace(group=dense[call.group]) for call in calls]


def _call(path: str, line: int, call: Any, kind: str, row: int, place: int) -> _Call:
    if not isinstance(call, dict):
        raise TraceError(path, line, f"calls[{place}] = {jsonl.shorten(call)}: expected an object")
    jsonl.only(path, line, call, "a call", CALL_KEYS)

    def tokens(name: str, default: int, high: int) -> int:
        return jsonl.whole(path, line, call, name, 0, high) if name in call else default

    inputs = jsonl.whole(path, line, call, "input_tokens", low=1)
    stream = tokens("stream", -1, MOST)
    if "history_tokens" in call and stream < 0:
        raise TraceError(path, line, f"calls[{place}] has history_tokens: expected a stream beside it")
    return _Call(
        row,
        tokens("group", place, MOST),
        jsonl.label(path, line, call, "stage") if "stage" in call else "call",
        kind,
        inputs,
        jsonl.whole(path, line, call, "output_tokens", low=1),
        tokens("shared_key", -1, _MOST_KEY),
        tokens("shared_prefix_tokens", 0, inputs),
        stream,
        tokens("history_tokens", 0, inputs),
        jsonl.real(path, line, call, "tool_s", low=0) if "tool_s" in call else 0.0,
    )


def _check_ids(path: str, heads: list[_Head], lines: list[int]) -> None:
    seen: dict[int | str, int] = {}
    for head, line in zip(heads, lines, strict=True):
        first = seen.setdefault(head.id, line)
        if first != line:
            raise TraceError(path, line, f"id = {head.id!r}: expected an id other than that of line {first}")


def _check_times(path: str, heads: list[_Head], lines: list[int]) -> None:
    timed = [head.arrival_s == head.arrival_s for head in heads]
    if any(timed) and not all(timed):
        line = lines[timed.index(False)]
        raise TraceError(path, line, "arrival_s is missing: expected it in every line, or in none")


def _tables(path: str, heads: list[_Head], calls: list[_Call]) -> Workload:
    workflows, table = empty_workflows(len(heads)), empty_calls(len(calls))
    for field in ("arrival_s", "slo_s", "slo_scale", "go_on"):
        workflows[field] = [getattr(head, field) for head in heads]
    workflows["kind"], kinds = number(head.kind for head in heads)
    workflows["tenant"], tenants = number(head.tenant for head in heads)
    same = ("workflow", "group", "input_tokens", "output_tokens", "stream", "history_tokens", "tool_s")
    for field in (*same, "shared_tokens"):
        table[field] = [getattr(call, field) for call in calls]
    stage, stages = number(call.stage for call in calls)
    step, steps = number(step_name(str(name)) for name in stages)
    table["step"] = step[stage]
    table["shared_key"] = _shared_keys(calls)
    problems = _leave_a_token(table)
    ids = _ids(workflows, heads)
    names = [tuple(str(name) for name in part) for part in (kinds, tenants, steps)]
    n_shared = int(table["shared_key"].max()) + 1
    return dense_streams(
        Workload(path, "headway", workflows, table, names[0], names[1], names[2], n_shared, 0, ids, problems)
    )


def _leave_a_token(table: npt.NDArray[np.void]) -> tuple[str, ...]:
    """Cut prefixes that cover the whole input by one token, and the line for `problems`."""
    whole = np.zeros(len(table), np.bool_)
    for field in ("shared_tokens", "history_tokens"):
        most = table["input_tokens"] - 1
        whole |= table[field] > most
        table[field] = np.minimum(table[field], most)
    table["shared_key"][table["shared_tokens"] == 0] = -1
    count = int(whole.sum())
    return (f"{count} calls whose prefix is the whole input; cut by one token",) if count else ()


def _shared_keys(calls: list[_Call]) -> list[int]:
    """Stated keys as they are; calls that state none share by (kind, stage), numbered after those."""
    after = max(call.shared_key for call in calls) + 1
    implied: dict[tuple[str, str], int] = {}
    keys = []
    for call in calls:
        if call.shared_key >= 0 or not call.shared_tokens:
            keys.append(call.shared_key)
        else:
            keys.append(after + implied.setdefault((call.kind, call.stage), len(implied)))
    return keys


def _ids(workflows: npt.NDArray[np.void], heads: list[_Head]) -> tuple[str, ...]:
    """Whole-number ids go to the table; names, where there is one, make all of them names."""
    if all(isinstance(head.id, int) for head in heads):
        workflows["id"] = [head.id for head in heads]
        return ()
    return tuple(str(head.id) for head in heads)
