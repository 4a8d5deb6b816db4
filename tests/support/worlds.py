"""Small fleets and workloads, written by hand or drawn from a seed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from control.model.fleet import Fleet, InstanceSpec
from control.model.workload import Workload, empty_calls, empty_workflows
from control.policy.tables import Floats, Ints
from control.twin.world import World


@dataclass(frozen=True)
class CallSpec:
    """One call; fields as in model.workload.CALL."""

    input_tokens: int
    output_tokens: int = 1
    group: int = 0
    step: int = 0
    tool_s: float = 0.0
    shared_key: int = -1
    shared_tokens: int = 0
    stream: int = -1
    history_tokens: int = 0
    draw_a: float = 0.0
    draw_b: float = 0.0


class Flow(NamedTuple):
    """One workflow and its calls."""

    arrival_s: float
    calls: Sequence[CallSpec]
    slo_s: float = math.nan
    kind: int = 0
    go_on: int = 0
    tenant: int = 0


def workload(
    flows: Sequence[Flow],
    kinds: Sequence[str] = ("chat",),
    steps: Sequence[str] = ("chat",),
    tenants: Sequence[str] = ("default",),
) -> Workload:
    """The workload of these workflows, in order of arrival."""
    flows = sorted(flows, key=lambda flow: flow.arrival_s)
    workflows = empty_workflows(len(flows))
    for row, flow in zip(workflows, flows, strict=True):
        row["arrival_s"], row["slo_s"] = flow.arrival_s, flow.slo_s
        row["kind"], row["go_on"], row["n_calls"] = flow.kind, flow.go_on, len(flow.calls)
        row["tenant"] = flow.tenant
    workflows["first_call"] = np.cumsum(workflows["n_calls"]) - workflows["n_calls"]
    calls = empty_calls(int(workflows["n_calls"].sum()))
    calls["workflow"] = np.repeat(np.arange(len(flows)), workflows["n_calls"])
    for row, call in zip(calls, (call for flow in flows for call in flow.calls), strict=True):
        for name, value in vars(call).items():
            row[name] = value
    n_shared = int(calls["shared_key"].max()) + 1 if len(calls) else 0
    n_streams = int(calls["stream"].max()) + 1 if len(calls) else 0
    return Workload(
        "by hand",
        "generated",
        workflows,
        calls,
        tuple(kinds),
        tuple(tenants),
        tuple(steps),
        n_shared,
        n_streams,
    )


def lone_calls(arrivals_s: Sequence[float], calls: Sequence[CallSpec]) -> Workload:
    """Workflows of one call each."""
    return workload([Flow(at_s, [call]) for at_s, call in zip(arrivals_s, calls, strict=True)])


def instance(gpu: str = "A100", model: str = "Llama-3.1-8B", **settings: object) -> InstanceSpec:
    """An instance of 64 blocks of 16 tokens without a watermark, unless `settings` say otherwise."""
    base = InstanceSpec("", gpu, model, kv_tokens=1024, watermark=0.0, max_num_seqs=8, max_num_batched_tokens=64)
    return replace(base, **settings)  # type: ignore[arg-type]


def fleet(*specs: InstanceSpec) -> Fleet:
    """A fleet of these instances, named by number."""
    return Fleet("tiny", tuple(replace(spec, name=f"i{k}") for k, spec in enumerate(specs)))


def with_constant_steps(world: World, step_s: float) -> World:
    """The same world, every iteration of which takes `step_s` whatever its batch."""
    profiles = world.costs.profiles.copy()
    for name in profiles.dtype.names or ():
        if name.endswith(("_ms", "_ms_0", "_ms_1")) or name == "additive":
            profiles[name] = 0
    world.instances["host_ms"] = step_s * 1e3
    costs = world.costs._replace(
        profiles=profiles,
        decode_ms=np.zeros_like(world.costs.decode_ms),
        mix_ms=np.zeros_like(world.costs.mix_ms),
    )
    return world._replace(costs=costs)


def single_calls(arrivals_s: Floats, inputs: Ints, outputs: Ints, seed: int = 0) -> Workload:
    """Many workflows of one call each, [n] by arrival; draws from `seed`."""
    n, rng = len(arrivals_s), np.random.default_rng(seed)
    workflows, calls = empty_workflows(n), empty_calls(n)
    workflows["arrival_s"], workflows["first_call"], workflows["n_calls"] = arrivals_s, np.arange(n), 1
    calls["workflow"], calls["input_tokens"], calls["output_tokens"] = np.arange(n), inputs, outputs
    calls["draw_a"], calls["draw_b"] = rng.random(n), rng.random(n)
    return Workload("single calls", "own", workflows, calls, ("chat",), ("default",), ("chat",), 0, 0)
