"""How much of a call's input stands in its stream's context already."""

import numpy as np

from control.workload.table import Ints


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
