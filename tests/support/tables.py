"""Rows of the tables by hand."""

import math
from typing import Any

import numpy as np

from control.policy.tables import (
    CALL_STATE,
    COUNTER,
    INSTANCE,
    POLICY,
    PROFILE,
    STEP,
    WORKFLOW_STATE,
    Costs,
    Table,
)


def table(dtype: np.dtype[np.void], *rows: dict[str, Any]) -> Table:
    """A table of zeros but for the fields given by row."""
    made = np.zeros(len(rows), dtype)
    for row, values in zip(made, rows, strict=True):
        for name, value in values.items():
            row[name] = value
    return made


def instances(*rows: dict[str, Any]) -> Table:
    """Instances that are up, with room for any context, unless a row says otherwise."""
    roomy = {"max_model_len": 1 << 30, "max_num_batched_tokens": 1 << 20, "max_num_seqs": 8}
    return table(INSTANCE, *({**roomy, **row} for row in rows))


def calls(*rows: dict[str, Any]) -> Table:
    """Calls of ten input tokens unless a row says otherwise, waiting in a list in this order."""
    linked = table(CALL_STATE, *({"input_tokens": 10, **row} for row in rows))
    linked["next"] = [*range(1, len(linked)), -1]
    linked["prev"] = range(-1, len(linked) - 1)
    return linked


def steps(*mean_exec_s: float) -> Table:
    """Steps of these fleet-mean times that end no planned repeats."""
    return table(STEP, *({"mean_exec_s": s, "drops": -1} for s in mean_exec_s))


def policy(dispatch: int, alpha: float = 0.5, floor: float = 0.1) -> Table:
    """The policy row itself."""
    row: Table = table(POLICY, {"dispatch": dispatch, "alpha": alpha, "floor": floor})[0]
    return row


def queue_policy(queue: int, aging_s: float = math.inf) -> Table:
    """The policy row itself, for the local queue."""
    row: Table = table(POLICY, {"queue": queue, "aging_s": aging_s})[0]
    return row


def workflows(*rows: dict[str, Any]) -> Table:
    """Workflows of zeros but for the fields given by row."""
    return table(WORKFLOW_STATE, *rows)


def counters(*tokens: float) -> Table:
    """Virtual counters of an instance, of workflows first seen there in this order."""
    return table(COUNTER, *({"tokens": n, "seen": k + 1} for k, n in enumerate(tokens)))


def costs(*profiles: dict[str, Any], decode_ms: float = 0.0, second_ms: float = 0.0, mix_ms: float = 0.0) -> Costs:
    """Costs whose bases do not depend on B or T; 64 sequences, 4096 tokens."""
    n = len(profiles)
    bases = np.stack([np.full(65, decode_ms), np.full(65, second_ms)])
    watts = np.arange(65.0) + 100.0
    return Costs(table(PROFILE, *profiles), np.stack([bases] * n), np.full((n, 4097), mix_ms), np.stack([watts] * n))
