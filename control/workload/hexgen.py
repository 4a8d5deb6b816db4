"""Text-to-SQL calls in order, as the HexGen-Flow artifact lists them (HexGen-Flow, section 5)."""

import numpy as np

from control.errors import TraceError
from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload.build import in_order, number, order_note, settle
from control.workload.prompts import N_SHARED, STEPS, static_prompts, step_name
from control.workload.table import Ints, Table, read_table

COLUMNS = ("workflow", "position", "step", "input_tokens", "output_tokens")

_PARALLEL = (STEPS.index("generate_candidate"), STEPS.index("evaluate"))


def read_hexgen(path: str, text: str) -> Workload:
    """Workflows of kind "text2sql" without arrival times; a refused call ends its workflow.

    The generate_candidate calls of a workflow run in parallel, so do its evaluate calls; every other row
    is a group of its own. Static prompts are shared prefixes. Raises TraceError.
    """
    table = read_table(path, text, COLUMNS)
    owner, ids = number(table.label("workflow"))
    order = in_order(table, owner, table.whole("position"), "position")
    owner, step = owner[order], _steps(table)[order]
    workflows, calls = empty_workflows(len(ids)), empty_calls(len(owner))
    workflows["arrival_s"] = np.nan
    calls["workflow"], calls["step"] = owner, step
    calls["input_tokens"] = table.whole("input_tokens", low=1)[order]
    calls["output_tokens"] = table.whole("output_tokens", low=1)[order]
    calls["group"], second = _groups(owner, step)
    prompts = static_prompts(step, second, calls["input_tokens"].astype(np.int64))
    calls["shared_key"], calls["shared_tokens"] = prompts
    problems = order_note(order, table, "position")
    names = tuple(str(i) for i in ids)
    return settle(
        Workload(path, "hexgen", workflows, calls, ("text2sql",), ("default",), STEPS, N_SHARED, 0, names, problems)
    )


def _steps(table: Table) -> Ints:
    names = [step_name(name) for name in table.label("step")]
    for row, name in enumerate(names):
        if name not in STEPS:
            what = f"step = {table.columns['step'][row]!r}: expected one of {', '.join(STEPS)}"
            raise TraceError(table.path, table.lines[row], what)
    return np.array([STEPS.index(name) for name in names], dtype=np.int64)


def _groups(owner: Ints, step: Ints) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Each call's group in its workflow, and whether it is a second call of a parallel step."""
    group = np.zeros(len(owner), np.int64)
    again = np.zeros(len(owner), np.bool_)
    seen: dict[tuple[int, int], int] = {}
    following = 0
    for row in range(len(owner)):
        if row and owner[row] != owner[row - 1]:
            following = 0
        key = (int(owner[row]), int(step[row]))
        again[row] = key in seen
        if key[1] in _PARALLEL and key in seen:
            group[row] = seen[key]
            continue
        group[row] = seen[key] = following
        following += 1
    return group, again
