"""Work that arrives: workflows of grouped calls, as two tables and the names they refer to.

A *call* is one LLM request. A *workflow* is what one deadline covers: groups of parallel calls, run in
order. A conversation is a workflow whose groups are turns; a lone request is a workflow of one call.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

#: One row per workflow, sorted by `arrival_s`; the calls of a workflow are contiguous in the call table.
WORKFLOW = np.dtype(
    [
        ("id", "i8"),  # number of the workflow, unique in the run; names[...] may hold the file's own id
        ("arrival_s", "f8"),  # s since the start of the trace
        ("slo_s", "f8"),  # s from arrival to deadline; nan: derive as slo_scale x base
        ("slo_scale", "f8"),  # factor on the base SLO of this workflow
        ("tenant", "i4"),  # index into Workload.tenants
        ("kind", "i4"),  # index into Workload.kinds
        ("first_call", "i4"),  # row of its first call
        ("n_calls", "i4"),  # number of its calls
        ("go_on", "u1"),  # 1: a refused call is skipped and the workflow goes on; 0: the workflow ends
    ]
)

#: One row per call, grouped by workflow, ordered by `group` inside it.
CALL = np.dtype(
    [
        ("workflow", "i4"),  # row of its workflow
        ("group", "i4"),  # 0-based place in the workflow; calls of equal group run in parallel
        ("step", "i4"),  # index into Workload.steps: what the call is, e.g. "revise"
        ("input_tokens", "i4"),  # the whole context sent, tokens
        (
            "output_tokens",
            "i4",
        ),  # tokens it will generate (>= 1); known to the twin's world, never to a policy
        ("shared_key", "i4"),  # static prefix shared between workflows, -1: none
        ("shared_tokens", "i4"),  # leading input tokens that belong to shared_key
        ("stream", "i4"),  # conversation or agent whose context this call continues, -1: none
        (
            "history_tokens",
            "i4",
        ),  # leading input tokens that stand in the stream's context after its last call
        (
            "tool_s",
            "f8",
        ),  # s of tool or think time after this call; the next group waits for all of its group
        ("draw_a", "f8"),  # uniform [0, 1), drawn beforehand: the policy's own randomness
        ("draw_b", "f8"),  # uniform [0, 1), drawn beforehand
    ]
)


class Workload(NamedTuple):
    """Workflows and calls with the names their columns index."""

    name: str
    format: str
    workflows: npt.NDArray[np.void]  # WORKFLOW, sorted by arrival_s (stable)
    calls: npt.NDArray[np.void]  # CALL
    kinds: tuple[str, ...]  # kinds of workflow, e.g. "text2sql", "chat", "agent"
    tenants: tuple[str, ...]
    steps: tuple[str, ...]  # kinds of call
    n_shared: int  # number of shared prefixes: shared_key < n_shared
    n_streams: int  # number of streams: stream < n_streams
    ids: tuple[str, ...] = ()  # the file's own id of each workflow row, () where it has none
    problems: tuple[str, ...] = ()  # what a reader noticed and mended, one line each

    @property
    def span_s(self) -> float:
        """Time from the first to the last arrival, s."""
        arrivals = self.workflows["arrival_s"]
        return float(arrivals[-1] - arrivals[0]) if len(arrivals) else 0.0


def empty_workflows(n: int) -> npt.NDArray[np.void]:
    """`n` workflow rows with neutral values: no SLO yet, scale 1, refusals end the workflow."""
    rows = np.zeros(n, WORKFLOW)
    rows["id"] = np.arange(n)
    rows["slo_s"] = np.nan
    rows["slo_scale"] = 1.0
    return rows


def empty_calls(n: int) -> npt.NDArray[np.void]:
    """`n` call rows with neutral values: no shared prefix, no stream, no tool time."""
    rows = np.zeros(n, CALL)
    rows["shared_key"] = -1
    rows["stream"] = -1
    rows["output_tokens"] = 1
    return rows
