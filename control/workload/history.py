"""Tables of conversations: how much of a call's input stands in its stream's context already."""

import numpy as np
import numpy.typing as npt

from control.model.workload import empty_calls, empty_workflows
from control.workload.table import Ints

Rows = npt.NDArray[np.void]


def conversations(
    owner: Ints, stream: Ints, group: Ints, input_tokens: Ints, output_tokens: Ints, claimed: Ints
) -> tuple[Rows, Rows]:
    """WORKFLOW and CALL tables of conversations without times, where a refused call is skipped.

    One entry a call, workflows numbered from 0 without gaps; `claimed` is the history before it is capped.
    """
    workflows, calls = empty_workflows(int(owner.max()) + 1), empty_calls(len(owner))
    workflows["arrival_s"], workflows["go_on"] = np.nan, 1
    calls["workflow"], calls["stream"], calls["group"] = owner, stream, group
    calls["input_tokens"], calls["output_tokens"] = input_tokens, output_tokens
    calls["history_tokens"] = capped_history(stream, claimed, input_tokens, output_tokens)
    return workflows, calls


def capped_history(stream: Ints, claimed: Ints, input_tokens: Ints, output_tokens: Ints) -> Ints:
    """`claimed` history tokens, at most what the stream's previous call left and one less than the input.

    Calls are in order inside each stream (rows of other streams may lie between). The last input token is
    always computed, as in vLLM; a stream's first call has no history.
    """
    order = np.argsort(stream, kind="stable")
    context = (input_tokens + output_tokens)[order]
    before = np.zeros(len(order), np.int64)
    before[1:] = np.where(np.diff(stream[order]) == 0, context[:-1], 0)
    left = np.empty(len(order), np.int64)
    left[order] = before
    return np.minimum(np.minimum(claimed, left), input_tokens - 1)


def at_least_one(tokens: Ints, name: str) -> tuple[Ints, tuple[str, ...]]:
    """Lengths of 0 tokens as 1 and the line for `problems`: a log's calls that were cut off still ran."""
    none = int((tokens == 0).sum())
    if not none:
        return tokens, ()
    return np.maximum(tokens, 1), (f"{none} calls with {name} = 0; counted as one token each",)
