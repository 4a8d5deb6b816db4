"""A trace, a fleet and a profile as the tables of the replay (HexGen-Flow, sections 1, 2 and 7)."""

from typing import Final

import numpy as np

from control.errors import FleetError, SettingError, TraceError
from control.model.fleet import Fleet, InstanceSpec, capacity
from control.model.hexgen_profile import DECODE_S, GPUS, LOAD_WEIGHT, PairTimes
from control.model.templates import DROPS, TEMPLATES
from control.model.workload import Workload
from control.policy.tables import Floats, Ints, Table
from control.twin.artifact_world import (
    BLOCK_TOKENS,
    CALL,
    INSTANCE,
    STATE,
    STEP,
    WATERMARK,
    WORKFLOW,
    ArtifactWorld,
    artifact_codes,
)

TEMPLATE: Final = TEMPLATES["text2sql"]

#: Length of the one draw of gaps, per workflow of the trace (section 7).
GAPS_PER_WORKFLOW: Final = 2.4


def arrivals_s(n: int, rate: float, seed: int) -> Floats:
    """Arrival times of `n` workflows at `rate` a second, s: the first is at the first gap."""
    gaps = np.random.RandomState(seed).gamma(1.0, 1.0 / rate, int(GAPS_PER_WORKFLOW * n))
    return np.asarray(np.cumsum(gaps)[:n])


def gpu_columns(fleet: Fleet) -> Ints:
    """Each instance's column in the profile. Raises FleetError for a GPU that it does not have."""
    for spec in fleet.instances:
        if spec.gpu not in GPUS:
            raise FleetError(f"fleet {fleet.name}: gpu = {spec.gpu!r} of {spec.name}: expected {', '.join(GPUS)}")
    return np.array([GPUS.index(spec.gpu) for spec in fleet.instances], np.int64)


def base_slo_s(fleet: Fleet, times: PairTimes) -> float:
    """Base SLO: fleet-mean T summed over the entries of the template, s (section 5)."""
    mean_s = times.step_s(tuple(TEMPLATE))[:, gpu_columns(fleet)].mean(axis=1)
    return float(mean_s @ np.array(list(TEMPLATE.values()), np.float64))


def build_artifact(
    work: Workload, fleet: Fleet, times: PairTimes, policy: str, *, alpha: float, rate: float, seed: int
) -> ArtifactWorld:
    """The replay of `work` before its first arrival; every workflow's SLO is the base SLO.

    Raises:
        SettingError: an unknown policy, an alpha outside [0, 1], a rate or seed out of bounds.
        FleetError: a GPU that the profile does not have.
        TraceError: a step outside the template, a pair the profile lacks, a prompt no instance can hold.
    """
    dispatch, queue = artifact_codes(policy)
    _check(alpha, rate, seed)
    columns, steps = gpu_columns(fleet), _template_steps(work)
    step_s, call_s = times.step_s(work.steps)[:, columns], times.call_s(_pairs(work))[:, columns]
    instances, calls = _instances(fleet, columns), _calls(work)
    _check_fit(work, fleet, instances)
    workflows = _workflows(work, arrivals_s(len(work.workflows), rate, seed), base_slo_s(fleet, times))
    n, w, c = len(instances), len(workflows), len(calls)
    return ArtifactWorld(
        state=np.array([(dispatch, queue, alpha, 0, 0, w)], STATE),
        instances=instances,
        workflows=workflows,
        calls=calls,
        steps=_steps(work.steps, step_s),
        remaining=np.tile(steps, (w, 1)),
        step_s=np.ascontiguousarray(step_s.T),
        prefill_s=_prefill_s(call_s, calls, instances),
        pending=np.zeros(c, np.int64),
        waiting=np.zeros((n, c), np.int64),
        running=np.zeros((n, c), np.int64),
        counters=np.zeros((n, w)),
        seen=np.full((n, w), -1, np.int64),
        queued=np.zeros((n, w), np.int64),
    )


def _check(alpha: float, rate: float, seed: int) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise SettingError(f"alpha = {alpha}: expected a number from 0 to 1")
    if not 0.0 < rate < np.inf:
        raise SettingError(f"rate = {rate}: expected workflows per second, a finite number > 0")
    if not 0 <= seed < 2**32:
        raise SettingError(f"seed = {seed}: expected a whole number from 0 to {2**32 - 1}")


def _template_steps(work: Workload) -> Ints:
    """Entries of the template for each step of the trace."""
    for step in work.steps:
        if step not in TEMPLATE:
            raise TraceError(work.name, None, f"step = {step!r}: expected one of {', '.join(TEMPLATE)}")
    return np.array([TEMPLATE[step] for step in work.steps], np.int64)


def _pairs(work: Workload) -> list[tuple[int, int]]:
    """(input, output) tokens of every call."""
    return list(zip(work.calls["input_tokens"].tolist(), work.calls["output_tokens"].tolist(), strict=True))


def _instances(fleet: Fleet, columns: Ints) -> Table:
    rows = np.zeros(len(fleet.instances), INSTANCE)
    rows["decode_s"], rows["load_weight"] = np.array(DECODE_S)[columns], np.array(LOAD_WEIGHT)[columns]
    rows["free"] = [_blocks(spec) for spec in fleet.instances]
    rows["kept"] = np.ceil(WATERMARK * rows["free"])
    return rows


def _blocks(spec: InstanceSpec) -> int:
    """KV blocks of an instance."""
    return capacity(spec)[0] // BLOCK_TOKENS


def _calls(work: Workload) -> Table:
    rows = np.zeros(len(work.calls), CALL)
    for name in ("workflow", "group", "step", "input_tokens", "output_tokens"):
        rows[name] = work.calls[name]
    return rows


def _workflows(work: Workload, arrival_s: Floats, slo_s: float) -> Table:
    rows = np.zeros(len(work.workflows), WORKFLOW)
    rows["arrival_s"], rows["slo_s"] = arrival_s, slo_s
    for name in ("first_call", "n_calls"):
        rows[name] = work.workflows[name]
    rows["next_call"] = rows["first_call"]
    return rows


def _steps(names: tuple[str, ...], step_s: Floats) -> Table:
    rows = np.zeros(len(names), STEP)
    rows["mean_exec_s"] = step_s.mean(axis=1)
    rows["drops"] = [names.index(DROPS[name]) if DROPS.get(name) in names else -1 for name in names]
    return rows


def _prefill_s(call_s: Floats, calls: Table, instances: Table) -> Floats:
    """Table time less the decode iterations, s, f8[n, c].

    Some measured calls are faster than their decode iterations: there the time is below 0, by some ms, and the
    instance's clock steps back, as in the authors' simulator. Only so are their figures met.
    """
    decode_s = calls["output_tokens"][None, :] * instances["decode_s"][:, None]
    return np.ascontiguousarray(call_s.T - decode_s)


def _check_fit(work: Workload, fleet: Fleet, instances: Table) -> None:
    """Every prompt fits every instance, so that no queue stands still for ever."""
    longest = int(work.calls["input_tokens"].argmax())
    tokens = int(work.calls["input_tokens"][longest])
    room = (instances["free"] - instances["kept"]) * BLOCK_TOKENS
    tight = int(room.argmin())
    if tokens > room[tight]:
        where = f"{fleet.instances[tight].name} of fleet {fleet.name}"
        raise TraceError(work.name, None, f"input_tokens = {tokens}: {where} admits at most {room[tight]}")
