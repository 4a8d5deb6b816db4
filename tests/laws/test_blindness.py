"""No decision depends on a length that has not been observed.

Two worlds differ only in how much some calls will generate. Until one of these ends, which is the first thing that
anybody could observe of it, everything that happens is the same in every bit.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.policy.codes import COMPLETED, FORMS
from control.policy.tables import Ints, Table
from control.twin.kernel import advance
from control.twin.world import World
from tests.support.scenes import ALL_POLICIES, Scene, examples, scenes
from tests.support.worlds import CallSpec, Flow, fleet, instance, lone_calls, workload

DECISIONS = ("instance", "placed_s", "score", "t_comp_s", "t_queue_s", "runner_up", "runner_up_score", "budget_s")
PLANS = ("plan_prefill_s", "plan_decode_s", "plan_tool_s")


def with_outputs(scene: Scene, outputs: Ints) -> Scene:
    """The scene with other output lengths; deadlines are declared, so that none is derived from lengths."""
    work = scene.work
    workflows, calls = work.workflows.copy(), work.calls.copy()
    workflows["slo_s"] = np.where(np.isnan(workflows["slo_s"]), 5.0, workflows["slo_s"])
    calls["output_tokens"] = outputs
    return replace(scene, work=work._replace(workflows=workflows, calls=calls))


def run(scene: Scene) -> World:
    """The scene's world at its end, with its journal."""
    world = scene.world(exact=True, journal=True)
    assert advance(world, np.inf)
    return world


def first_observed_s(worlds: list[World], changed: Ints) -> float:
    """When the first of the `changed` calls completes in any of the worlds."""
    times = [w.calls["finished_s"][changed][w.calls["state"][changed] == COMPLETED] for w in worlds]
    return float(np.concatenate([*times, [np.inf]]).min())


def before(world: World, at_s: float) -> Table:
    """Journal entries before `at_s`."""
    journal = world.journal[: world.clock[0]["n_journal"]]
    return journal[journal["at_s"] < at_s]


def check_blind(scene: Scene, outputs: Ints, changed: Ints) -> None:
    """Nothing differs until a changed call is observed; the oracle need, which looks ahead, is left out."""
    scene = replace(scene, conversations=scene.conversations._replace(need="observed"))
    worlds = [
        run(with_outputs(scene, lengths)) for lengths in (scene.work.calls["output_tokens"].astype(np.int64), outputs)
    ]
    at_s = first_observed_s(worlds, changed)
    one, other = (before(world, at_s) for world in worlds)
    assert one.tobytes() == other.tobytes()
    placed = [world.calls["placed_s"] for world in worlds]  # of the latest placement: a call that moved has two
    known = np.flatnonzero(np.all([(at >= 0) & (at < at_s) for at in placed], axis=0))
    for name in DECISIONS:
        assert np.array_equal(worlds[0].calls[name][known], worlds[1].calls[name][known]), name
    arrived = worlds[0].workflows["arrival_s"] < at_s
    for name in PLANS:
        assert np.array_equal(worlds[0].workflows[name][arrived], worlds[1].workflows[name][arrived]), name


@examples(200)
@given(scene=scenes(), share=st.floats(0.0, 1.0), seed=st.integers(0, 2**32 - 1))
def test_lengths_of_unobserved_calls_change_no_decision(scene: Scene, share: float, seed: int) -> None:
    outputs = scene.work.calls["output_tokens"].astype(np.int64)
    changed = np.flatnonzero(scene.work.calls["workflow"] >= share * len(scene.work.workflows))
    outputs[changed] = np.random.default_rng(seed).integers(1, 80, len(changed))
    check_blind(scene, outputs, changed)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_swapped_lengths_of_a_burst_are_placed_alike(policy: str, form: str) -> None:
    """Twelve calls at once on three instances: short first, then long first."""
    outputs = np.arange(2, 26, 2)
    rng = np.random.default_rng(1)
    work = lone_calls([0.0] * 12, [CallSpec(20, int(n), draw_a=rng.random(), draw_b=rng.random()) for n in outputs])
    three = fleet(instance(max_num_seqs=2), instance("H100"), instance("L4"))
    check_blind(Scene(work, three, policy, 0.3, 1.0, -1, form=form), outputs[::-1].copy(), np.arange(12))


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_templates_learned_from_ended_workflows_tell_nothing_of_later_ones(policy: str) -> None:
    """Six workflows of two stages teach their kind's template; six more come, their lengths in either order."""
    outputs = np.arange(2, 26)
    calls = [CallSpec(20, int(n), group=k % 2, step=k % 2) for k, n in enumerate(outputs)]
    flows = [Flow(100.0 * (k >= 6), calls[2 * k : 2 * k + 2], slo_s=5.0) for k in range(12)]
    work = workload(flows, ("untold",), ("first", "second"))
    three = fleet(instance(max_num_seqs=2), instance("H100"), instance("L4"))
    scene, late = Scene(work, three, policy, 0.3, 1.0, -1), np.arange(12, 24)
    swapped = np.concatenate([outputs[:12], outputs[:11:-1]])
    check_blind(scene, swapped, late)
    world = run(scene)
    assert not world.workflows["plan_decode_s"][:6].any()
    assert (world.workflows["plan_decode_s"][6:] > 0.0).all()  # planned by the template that the first six taught
