"""Random scenes: a small fleet under pressure, a workload of every feature, a policy.

Hypothesis draws what shapes a scene; the lengths inside are filled from a drawn seed.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from control.model.fleet import Fleet, InstanceSpec
from control.model.workload import Workload
from control.policy.codes import DOWN, DRAINING, FORMS, NEEDS, POLICIES, ROLES, ROUTERS
from control.policy.rules import USUAL, Conversations
from control.twin.pack import build_world
from control.twin.world import World
from tests.support.worlds import CallSpec, Flow, fleet, instance, with_constant_steps, workload

PAIRS = (("A40", "Qwen3-0.6B"), ("A100", "Llama-3.1-8B"), ("H100", "Llama-3.1-8B"), ("L4", "Llama-3.1-8B"))
KINDS = ("chat", "text2sql")
STEPS = ("chat", "revise", "unit_tester", "evaluate")
TENANTS = ("ours", "theirs", "others")
ALL_POLICIES = tuple(sorted(POLICIES))
#: These look at what is cached at the last batch boundary, which lies further back in fast-forward: now and then they
#: decide otherwise there than per iteration.
LOOKING_BACK = ("prefix-affinity", "ampd")
ALIKE = tuple(name for name in ALL_POLICIES if name not in LOOKING_BACK)
N_SHARED = 2
GRID_S = 0.125  # exact in binary


def examples(usual: int) -> settings:
    """Settings of a test that runs as many random scenes, or as many as HEADWAY_EXAMPLES says."""
    return settings(
        max_examples=int(os.environ.get("HEADWAY_EXAMPLES", usual)),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class Scene:
    """Everything a world is built from."""

    work: Workload
    instances: Fleet
    policy: str
    alpha: float
    knee: float  # factor on the KV slope of a second decode line: moves the knee into the scene's sizes
    out_of_service: int  # instance that is drained or down from the start, -1: none
    step_s: float = 0.0  # every iteration takes this long, so that much falls on one instant; 0: what it costs
    form: str = "paper"
    aging_s: float = math.inf
    conversations: Conversations = USUAL

    def world(self, exact: bool = False, journal: bool = False) -> World:
        """A fresh world at time 0."""
        rules = (self.form, self.aging_s, self.conversations)
        world = build_world(self.work, self.instances, self.policy, self.alpha, exact, journal, *rules)
        world.costs.profiles["kv_ms_1"] *= self.knee
        if self.step_s > 0.0:
            world = with_constant_steps(world, self.step_s)
        if 0 <= self.out_of_service < len(world.instances):
            world.instances[self.out_of_service]["state"] = DRAINING if self.alpha < 0.5 else DOWN
        return world


@st.composite
def specs(draw: st.DrawFn) -> InstanceSpec:
    """An instance with little memory."""
    gpu, model = draw(st.sampled_from(PAIRS))
    seqs = draw(st.integers(1, 8))
    block = draw(st.sampled_from([1, 4, 16]))
    return instance(
        gpu,
        model,
        max_num_seqs=seqs,
        max_num_batched_tokens=max(seqs, draw(st.sampled_from([8, 20, 64, 256]))),
        block_size=block,
        kv_tokens=block * draw(st.integers(3, 24)),
        watermark=draw(st.sampled_from([0.0, 0.05, 0.2])),
        prefix_caching=draw(st.booleans()),
        max_model_len=draw(st.sampled_from([None, 40])),
        host_overhead_ms=draw(st.sampled_from([0.0, 1.0])),
        role=draw(st.sampled_from([ROLES[0], *ROLES])),
    )


@st.composite
def conversation_settings(draw: st.DrawFn) -> Conversations:
    """Settings of the policies that place conversations."""
    return Conversations(
        need=draw(st.sampled_from(NEEDS)),
        router=draw(st.sampled_from(ROUTERS)),
        error=draw(st.sampled_from([0.0, 0.3, 1.0])),
        idle_ttl_s=draw(st.sampled_from([math.inf, 0.1, 2 * GRID_S])),
    )


def random_call(rng: np.random.Generator, group: int, longest: int, streams: tuple[int, int]) -> CallSpec:
    """A call of up to `longest` input tokens, of one of `streams`, of a shared prefix, or neither."""
    tokens = int(rng.integers(1, longest + 1))
    shared = int(rng.integers(-1, N_SHARED)) if tokens > 1 else -1
    stream = int(rng.choice([-1, *range(*streams)]))
    return CallSpec(
        input_tokens=tokens,
        output_tokens=int(rng.integers(1, max(2, longest // 2))),
        group=group,
        step=int(rng.integers(0, len(STEPS))),
        tool_s=float(rng.choice([0.0, 0.0, GRID_S, 0.05, rng.random()])),
        shared_key=shared,
        shared_tokens=int(rng.integers(1, tokens)) if shared >= 0 else 0,
        stream=stream,
        history_tokens=int(rng.integers(0, tokens)) if stream >= 0 else 0,
        draw_a=rng.random(),
        draw_b=rng.random(),
    )


def random_flow(rng: np.random.Generator, number: int, span_s: float, longest: int, grid: bool) -> Flow:
    """A workflow of up to 4 groups of up to 3 calls, with the two streams of this number."""
    arrival_s = rng.random() * span_s
    calls = [
        random_call(rng, group, longest, (2 * number, 2 * number + 2))
        for group in range(int(rng.integers(1, 5)))
        for _ in range(int(rng.choice([1, 1, 2, 3])))
    ]
    return Flow(
        arrival_s=round(arrival_s / GRID_S) * GRID_S if grid else arrival_s,
        calls=calls,
        slo_s=float(rng.choice([np.nan, 0.0, 2.0, 40.0, 300.0])),
        kind=int(rng.integers(0, len(KINDS))),
        go_on=int(rng.integers(0, 2)),
        tenant=int(rng.integers(0, len(TENANTS))),
    )


@st.composite
def scenes(draw: st.DrawFn, grid: bool = True, policies: Sequence[str] = ALL_POLICIES) -> Scene:
    """A scene under one of `policies`; with `grid`, arrivals, tool returns and ends of runs may fall on one instant."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    span_s, longest = draw(st.sampled_from([0.0, 0.5, 3.0])), draw(st.sampled_from([20, 60, 120]))
    gridded = draw(st.booleans()) if grid else False
    shared_by = draw(st.sampled_from([1, 5]))  # workflows that continue the same streams
    flows = [random_flow(rng, k // shared_by, span_s, longest, gridded) for k in range(draw(st.integers(1, 25)))]
    return Scene(
        work=workload(flows, KINDS, STEPS, TENANTS),
        instances=fleet(*draw(st.lists(specs(), min_size=1, max_size=4))),
        policy=draw(st.sampled_from(policies)),
        alpha=draw(st.sampled_from([0.0, 0.3, 1.0])),
        knee=draw(st.sampled_from([1.0, 1000.0])),
        out_of_service=draw(st.sampled_from([-1, -1, -1, 0, 2])),
        step_s=draw(st.sampled_from([0.0, GRID_S])) if gridded else 0.0,
        form=draw(st.sampled_from(FORMS)),
        aging_s=draw(st.sampled_from([math.inf, 0.05, 0.5])),
        conversations=draw(conversation_settings()),
    )
