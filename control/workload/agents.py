"""Agent conversations: a first prompt, then turns that append to a growing context.

Two shapes: the default has the premise of ConServe, section 3 (one heavy prefill, then a light tail);
CODING has the regime of its section 7, where later turns carry most of the uncached prefill.
"""

import math
from dataclasses import dataclass

import numpy as np

from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload.arrivals import generator
from control.workload.build import settle
from control.workload.table import Floats, Ints
from control.workload.tenants import assign_tenants


@dataclass(frozen=True)
class AgentShape:
    """Parameters of the generator. Lengths are tokens, lognormal with the given mean and sigma."""

    turns_min: int = 5
    turns_max: int = 10
    system_tokens: int = 3000  # static prompt and tool definitions, shared by all conversations
    first_mean: float = 15300.0  # turn-1 input, the static prompt included (ConServe, section 3)
    first_sigma: float = 0.13
    appended_mean: float = 68.0  # new input of a later turn (ConServe, section 3)
    appended_sigma: float = 0.3
    output_mean: float = 330.0
    output_sigma: float = 1.2
    think_median_s: float = 5.3  # s between turns; 18 % exceed 60 s, 6.4 % exceed 300 s (ConServe, section 7)
    think_sigma: float = 2.65
    think_most_s: float = 600.0  # longer pauses are cut to this, s
    compaction_share: float = 0.009  # later turns that shrink the context (ConServe, section 7)
    compacted_to: float = 0.3  # share of the context that is left then
    context_most: int = 120_000  # a context that would grow past it is compacted; no turn appends over half


#: Turn 1 is about a sixth of the uncached prefill, as in the coding-agent traces of ConServe, section 7.
CODING = AgentShape(
    turns_min=10,
    turns_max=50,
    first_mean=19000.0,
    first_sigma=0.4,
    appended_mean=2840.0,
    appended_sigma=1.7,
    output_mean=414.0,
    output_sigma=1.15,
)


def agents(
    n: int,
    seed: int,
    *,
    tenants: tuple[str, ...] = ("default",),
    slo_scales: tuple[float, ...] = (1.0,),
    shape: AgentShape = AgentShape(),
    stream: tuple[int, ...] = (),
) -> Workload:
    """`n` conversations of kind "agent" without arrival times; a refused turn is skipped.

    A larger `n` only appends conversations. `stream` picks an independent sequence of the same seed.
    Raises SettingError.
    """
    uniform = generator(seed, *stream, 0).random((n, shape.turns_max + 1))
    normal = generator(seed, *stream, 1).standard_normal((n, shape.turns_max, 3))
    turns = shape.turns_min + (uniform[:, 0] * (shape.turns_max - shape.turns_min + 1)).astype(np.int64)
    inputs, outputs, history = _contexts(shape, uniform[:, 1:], normal)
    owner, turn = np.nonzero(np.arange(shape.turns_max) < turns[:, None])
    workflows, calls = empty_workflows(n), empty_calls(len(owner))
    workflows["arrival_s"], workflows["go_on"] = np.nan, 1
    assign_tenants(workflows, tenants, slo_scales)
    calls["workflow"] = calls["stream"] = owner
    calls["group"] = turn
    calls["input_tokens"], calls["output_tokens"] = inputs[owner, turn], outputs[owner, turn]
    calls["history_tokens"] = history[owner, turn]
    calls["shared_key"], calls["shared_tokens"] = 0, shape.system_tokens
    think = np.minimum(shape.think_median_s * np.exp(shape.think_sigma * normal[:, :, 2]), shape.think_most_s)
    calls["tool_s"] = np.where(turn < turns[owner] - 1, think[owner, turn], 0.0)
    return settle(Workload("agents", "agents", workflows, calls, ("agent",), tenants, ("turn",), 1, n))


def _contexts(shape: AgentShape, uniform: Floats, normal: Floats) -> tuple[Ints, Ints, Ints]:
    """Input, output and history tokens of every turn, (n, turns_max)."""
    outputs = _tokens(shape.output_mean, shape.output_sigma, normal[:, :, 1])
    appended = _tokens(shape.appended_mean, shape.appended_sigma, normal[:, :, 0])
    appended = np.minimum(appended, shape.context_most // 2)
    inputs, history = np.empty_like(outputs), np.zeros_like(outputs)
    first = _tokens(shape.first_mean, shape.first_sigma, normal[:, 0, 0])
    inputs[:, 0] = np.maximum(first, shape.system_tokens + 1)
    for turn in range(1, shape.turns_max):
        context = inputs[:, turn - 1] + outputs[:, turn - 1]
        compacted = uniform[:, turn] < shape.compaction_share
        compacted |= context + appended[:, turn] > shape.context_most
        left = np.maximum((context * shape.compacted_to).astype(np.int64), shape.system_tokens)
        inputs[:, turn] = np.where(compacted, left, context) + appended[:, turn]
        history[:, turn] = np.where(compacted, shape.system_tokens, context)
    return inputs, outputs, history


def _tokens(mean: float, sigma: float, normal: Floats) -> Ints:
    values = mean * math.exp(-sigma * sigma / 2.0) * np.exp(sigma * normal)
    return np.maximum(np.rint(values), 1).astype(np.int64)
