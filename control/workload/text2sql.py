"""Text-to-SQL workflows drawn like the published ones (HexGen-Flow, section 5).

Published over 123 workflows: 16.2 calls (p95 23) in 11.7 stages (p95 17), 35.0 k input tokens (p95 76 k),
1.6 k output tokens (p95 3.0 k), .9 revisions (71 % none), static prompts per step. How the steps share
these totals is ours.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload.arrivals import generator
from control.workload.build import settle
from control.workload.prompts import N_SHARED, STATIC_TOKENS, STEPS, static_prompts
from control.workload.table import Floats, Ints
from control.workload.tenants import assign_tenants

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Text2SqlShape:
    """Parameters of the generator; lengths are tokens, `_sigma` the spread of a lognormal length."""

    keywords_share: float = 0.9  # workflows that extract keywords
    unit_test_share: float = 0.95  # workflows that write and evaluate unit tests
    revisions: tuple[float, ...] = (0.71, 0.14, 0.04, 0.02, 0.01, 0.01, 0.018, 0.012, 0.01, 0.01, 0.02)
    evaluations: tuple[float, ...] = (0.0, 0.0, 0.0, 0.09, 0.37, 0.29, 0.21, 0.025, 0.015)
    schema_mean: float = 3100.0  # the database's schema in the prompts of candidates and revisions
    schema_sigma: float = 0.9
    revision_growth: float = 110.0  # added by each earlier revision of the workflow
    revision_mean: float = 245.0  # output of a revision, alike inside a workflow
    revision_sigma: float = 0.5


class _Slots(NamedTuple):
    """The places a workflow's calls can take, in order."""

    step: Ints
    second: Bools  # second candidate
    joins: Bools  # runs beside the call before it
    input_mean: Floats  # what the call adds to its static prompt and schema, tokens
    input_sigma: Floats
    output_mean: Floats
    output_sigma: Floats
    schema: Bools  # the schema is part of the prompt


#: step, own input tokens and sigma, output tokens and sigma.
_HEAD = (
    ("information_retriever", 301, 0.0, 7, 0.5),
    ("extract_keywords", 63, 0.35, 40, 0.45),
    ("information_retriever", 304, 0.0, 7, 0.5),
    ("information_retriever", 308, 0.0, 7, 0.5),
    ("information_retriever", 312, 0.0, 7, 0.5),
    ("generate_candidate", 60, 0.35, 660, 0.25),
    ("generate_candidate", 208, 0.1, 460, 0.22),
)
_REVISE = ("revise", 260, 0.1, 1, 0.25)
_TESTS = (
    ("unit_tester", 271, 0.0, 4.7, 0.15),
    ("generate_unit_test", 1022, 0.27, 94, 0.3),
    ("unit_tester", 275, 0.0, 4.7, 0.15),
)
_EVALUATE = ("evaluate", 697, 0.35, 29, 0.5)
_TAIL = (("unit_tester", 278, 0.0, 4.7, 0.15),)


def text2sql(
    n: int,
    seed: int,
    *,
    tenants: tuple[str, ...] = ("default",),
    slo_scales: tuple[float, ...] = (1.0,),
    shape: Text2SqlShape = Text2SqlShape(),
    stream: tuple[int, ...] = (),
) -> Workload:
    """`n` workflows of kind "text2sql" without arrival times, tenants in turn with their SLO scales.

    A larger `n` only appends workflows. `stream` picks an independent sequence of the same seed.
    Raises SettingError.
    """
    slots = _slots(shape)
    uniform = generator(seed, *stream, 0).random((n, 4))
    normal = generator(seed, *stream, 1).standard_normal((n, 2 * len(slots.step) + 2))
    present, joins = _present(slots, shape, uniform)
    owner, slot = np.nonzero(present)
    workflows, calls = empty_workflows(n), empty_calls(len(owner))
    workflows["arrival_s"] = np.nan
    assign_tenants(workflows, tenants, slo_scales)
    calls["workflow"], calls["step"] = owner, slots.step[slot]
    calls["group"] = (np.cumsum(present & ~joins, axis=1) - 1)[owner, slot]
    inputs, outputs = _lengths(slots, shape, normal)
    calls["input_tokens"] = inputs[owner, slot]
    calls["output_tokens"] = outputs[owner, slot]
    prompts = static_prompts(slots.step[slot], slots.second[slot], inputs[owner, slot])
    calls["shared_key"], calls["shared_tokens"] = prompts
    return settle(Workload("text2sql", "text2sql", workflows, calls, ("text2sql",), tenants, STEPS, N_SHARED, 0))


def _slots(shape: Text2SqlShape) -> _Slots:
    revise = (_REVISE,) * (len(shape.revisions) - 1)
    evaluate = (_EVALUATE,) * (len(shape.evaluations) - 1)
    rows = (*_HEAD, *revise, *_TESTS, *evaluate, *_TAIL)
    step = np.array([STEPS.index(row[0]) for row in rows])
    numbers = np.array([row[1:] for row in rows], dtype=np.float64).T
    candidate = step == STEPS.index("generate_candidate")
    repeated = np.append(False, np.diff(step) == 0)
    parallel = candidate | (step == STEPS.index("evaluate"))
    own, own_sigma, output, output_sigma = numbers
    schema = candidate | (step == STEPS.index("revise"))
    joins = parallel & repeated
    return _Slots(step, candidate & repeated, joins, own, own_sigma, output, output_sigma, schema)


def _present(slots: _Slots, shape: Text2SqlShape, uniform: Floats) -> tuple[Bools, Bools]:
    """Which slots each workflow has, and which of them run beside the slot before."""
    revisions = np.searchsorted(np.cumsum(shape.revisions), uniform[:, 0], side="right")
    tested = uniform[:, 1] < shape.unit_test_share
    evaluations = np.searchsorted(np.cumsum(shape.evaluations), uniform[:, 2], side="right")
    present = np.ones((len(uniform), len(slots.step)), np.bool_)
    for name, count in (("revise", revisions), ("evaluate", np.where(tested, evaluations, 0))):
        places = np.flatnonzero(slots.step == STEPS.index(name))
        present[:, places] = np.arange(len(places)) < count[:, None]
    tests = int(np.flatnonzero(slots.step == STEPS.index("generate_unit_test"))[0])
    present[:, tests : tests + 2] = tested[:, None]
    present[:, 1] = uniform[:, 3] < shape.keywords_share
    return present, np.broadcast_to(slots.joins, present.shape)


def _lengths(slots: _Slots, shape: Text2SqlShape, normal: Floats) -> tuple[Ints, Ints]:
    """Input and output tokens of every slot of every workflow, (n, slots)."""
    k = len(slots.step)
    own = _lognormal(slots.input_mean, slots.input_sigma, normal[:, :k])
    outputs = _lognormal(slots.output_mean, slots.output_sigma, normal[:, k : 2 * k])
    schema = _lognormal(shape.schema_mean, shape.schema_sigma, normal[:, 2 * k, None])
    key = np.where(slots.second, len(STEPS), slots.step)
    inputs = np.array(STATIC_TOKENS)[key] + own + np.where(slots.schema, schema, 0.0)
    revise = np.flatnonzero(slots.step == STEPS.index("revise"))
    inputs[:, revise] += shape.revision_growth * np.arange(len(revise))
    outputs[:, revise] *= _lognormal(shape.revision_mean, shape.revision_sigma, normal[:, 2 * k + 1, None])
    return np.rint(inputs).astype(np.int64), np.maximum(np.rint(outputs), 1).astype(np.int64)


def _lognormal(mean: Floats | float, sigma: Floats | float, normal: Floats) -> Floats:
    """Lognormal values of the given mean from standard normal draws."""
    values: Floats = mean * np.exp(sigma * normal - np.square(sigma) / 2.0)
    return values
