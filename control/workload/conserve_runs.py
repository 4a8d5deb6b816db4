"""Conversations arranged as in ConServe's evaluation: leading turns, no think time, Poisson arrivals of its seed."""

from dataclasses import replace

import numpy as np

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.agents import AgentShape, agents
from control.workload.arrivals import arrange
from control.workload.build import settle
from control.workload.table import Floats

CONVERSATIONS = 255  # of the paper's trace
FAR_APART_S = 1e5  # between arrivals when every conversation is to be alone

#: The paper's trace in shape: one heavy prefill, light turns behind it, every context within the model's limit.
PUBLISHED_SHAPE = AgentShape(
    system_tokens=1,
    first_mean=15285.0,
    output_mean=174.0,
    compaction_share=0.0,
    context_most=40_000,
)


def generated(turns: int, seed: int) -> Workload:
    """Conversations of the same kind as the paper's, of `turns` turns each, without a shared prompt.

    Raises SettingError: `turns` below 1.
    """
    if turns < 1:
        raise SettingError(f"--turns = {turns}: expected a whole number >= 1")
    shape = replace(PUBLISHED_SHAPE, turns_min=turns, turns_max=turns)
    work = agents(CONVERSATIONS, seed, shape=shape)
    calls = work.calls.copy()
    calls["shared_key"], calls["shared_tokens"] = -1, 0
    return work._replace(name="generated conversations", calls=calls, n_shared=0)


def leading_turns(work: Workload, turns: int) -> Workload:
    """The first `turns` turns of every workflow. Raises SettingError: `turns` below 1."""
    if turns < 1:
        raise SettingError(f"--turns = {turns}: expected a whole number >= 1")
    return settle(work._replace(calls=work.calls[work.calls["group"] < turns]))


def without_think_time(work: Workload) -> Workload:
    """The same work, every turn ready as soon as the one before it ended."""
    calls = work.calls.copy()
    calls["tool_s"] = 0.0
    return work._replace(calls=calls)


def published_arrivals_s(n: int, rate: float, seed: int) -> Floats:
    """`n` Poisson arrivals at `rate` conversations/s, drawn as the paper's artifact draws them, s."""
    gaps_s = np.random.default_rng(seed).exponential(1.0 / rate, n)
    return np.asarray(np.cumsum(gaps_s))


def arrive(work: Workload, rate: float, seed: int) -> Workload:
    """`work` ready to run at `rate` conversations/s; the later turns' draws, by which AMPD errs, are of the seed too.

    Raises SettingError: a rate that is none.
    """
    drawn = arrange(work, rate=rate, seed=seed)
    workflows, calls = drawn.workflows.copy(), drawn.calls.copy()
    workflows["arrival_s"] = published_arrivals_s(len(workflows), rate, seed)
    later = calls["group"] > 0
    calls["draw_b"][later] = np.random.default_rng(seed).random(int(later.sum()))
    return drawn._replace(workflows=workflows, calls=calls)


def apart(work: Workload) -> Workload:
    """`work` ready to run with every conversation alone: the next arrives long after it has ended."""
    drawn = arrange(work, rate=1.0)
    workflows = drawn.workflows.copy()
    workflows["arrival_s"] = np.arange(len(workflows)) * FAR_APART_S
    return drawn._replace(workflows=workflows)
