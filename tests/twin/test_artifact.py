"""The replay of HexGen-Flow's simulator: its rules on small traces, its published figures on the real one."""

from pathlib import Path

import numpy as np
import pytest

from control.errors import FleetError, SettingError, TraceError
from control.model.fleet import load_fleet
from control.model.hexgen_profile import PairTimes, linear_fits, read_profile
from control.model.workload import Workload
from control.tuning.reproduce_hexgen import REFERENCE, run_artifact
from control.twin.artifact import replay
from control.twin.artifact_build import arrivals_s, base_slo_s, build_artifact
from control.twin.artifact_world import ARTIFACT_POLICIES, ArtifactWorld
from control.workload.load import load_trace
from control.workload.text2sql import text2sql
from tests.support.worlds import CallSpec, Flow, workload

HEAD = "workflow,position,step,input_tokens,output_tokens\n"
STEPS = ("revise", "unit_tester")
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the authors' trace is not on this machine")


def ended(
    work: Workload, policy: str, fleet: str = "hexgen-hetero-1", alpha: float = 0.1, rate: float = 0.5
) -> ArtifactWorld:
    """The replay after its last call."""
    world = build_artifact(work, load_fleet(fleet), linear_fits(), policy, alpha=alpha, rate=rate, seed=0)
    replay(world)
    return world


@pytest.mark.parametrize(
    ("fleet", "base_s"), [("hexgen-hetero-1", 58.907), ("hexgen-hetero-2", 60.234), ("hexgen-homo", 47.805)]
)
def test_base_slo_is_the_published_one(fleet: str, base_s: float) -> None:
    assert base_slo_s(load_fleet(fleet), linear_fits()) == pytest.approx(base_s, abs=5e-4)


def crowd() -> Workload:
    """Workflows of two stages: calls of a token, then prompts that fill the KV and an answer longer than its prompt."""
    token = [CallSpec(16, 1), CallSpec(16, 1, group=1, step=1)]
    stages = [[*[CallSpec(30_000 + k, 3)] * 5, CallSpec(16, 40), token[1]] for k in range(3)]
    return workload([Flow(0.0, calls) for calls in (token, token, *stages)], ("text2sql",), STEPS)


@pytest.mark.parametrize("policy", ARTIFACT_POLICIES)
@pytest.mark.parametrize(("work", "rate"), [(text2sql(30, 1), 0.5), (crowd(), 50.0)], ids=["generated", "crowd"])
def test_every_call_runs_once_and_all_kv_comes_back(work: Workload, rate: float, policy: str) -> None:
    fleet = load_fleet("hexgen-hetero-1")
    before = build_artifact(work, fleet, linear_fits(), policy, alpha=0.1, rate=rate, seed=0)
    world = ended(work, policy, rate=rate)
    assert (world.calls["generated"] == work.calls["output_tokens"]).all()
    assert (world.instances["free"] == before.instances["free"]).all()
    assert (world.calls["finished_s"] > world.calls["ready_s"]).all()
    assert (world.queued == 0).all()
    assert not world.instances["n_running"].any()


@pytest.mark.parametrize(
    ("pair", "table_s", "takes_s"), [((5963, 79), 3.1794, 3.1794), ((16, 1), 0.02, 0.035)], ids=["usual", "too fast"]
)
def test_a_lone_call_takes_its_table_time(
    pair: tuple[int, int], table_s: float, takes_s: float, tmp_path: Path
) -> None:
    """Or its decode iterations, of 0.035 s each, where the table has less: no call starts before it is ready."""
    path = tmp_path / "one.csv"
    path.write_text(HEAD + f"0,0,revise,{pair[0]},{pair[1]}\n")
    times = PairTimes("table", {pair: (table_s, 4.8172, 4.4442)})
    work = load_trace(str(path))
    world = build_artifact(work, load_fleet("hexgen-homo"), times, "rr-fcfs", alpha=0.0, rate=1.0, seed=0)
    replay(world)
    latency_s = float(world.workflows["finished_s"][0] - world.workflows["arrival_s"][0])
    assert takes_s <= latency_s <= takes_s + 2.001e-4  # the idle clock moves in ticks of .1 ms


def test_arrivals_start_at_the_first_gap_and_scale_with_the_rate() -> None:
    slow, fast = arrivals_s(90, 0.5, 0), arrivals_s(90, 1.0, 0)
    assert slow[0] > 0.0
    assert np.allclose(slow, 2.0 * fast)


def test_budget_of_the_first_call_is_its_share_of_the_base_slo() -> None:
    world = ended(text2sql(5, 0), "hexgen")
    own_s, base_s = world.steps["mean_exec_s"][0], world.workflows["slo_s"][0]
    assert world.calls["budget_s"][0] == pytest.approx(own_s)
    assert base_s == pytest.approx(58.907, abs=5e-4)


def test_alpha_one_sends_everything_to_the_cheapest_gpu() -> None:
    world = ended(text2sql(10, 0), "wb-fcfs", alpha=1.0)
    assert world.instances["dispatched_s"][0] > 0.0
    assert not world.instances["dispatched_s"][1:].any()


def test_a_pair_missing_from_the_profile_is_named() -> None:
    times = PairTimes("p.csv", {(1, 1): (1.0, 1.0, 1.0)})
    with pytest.raises(TraceError, match=r"p\.csv: input_tokens = \d+, output_tokens = \d+ is missing"):
        build_artifact(text2sql(1, 0), load_fleet("hexgen-homo"), times, "vtc", alpha=0.0, rate=1.0, seed=0)


def test_a_prompt_beyond_every_kv_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(HEAD + "0,0,revise,60000,79\n")
    with pytest.raises(TraceError, match="admits at most 54752"):
        ended(load_trace(str(path)), "rr-fcfs")


def test_bad_settings_are_refused() -> None:
    work, fleet = text2sql(1, 0), load_fleet("hexgen-homo")
    for bad in ({"alpha": 2.0}, {"rate": 0.0}, {"seed": -1}):
        with pytest.raises(SettingError, match=next(iter(bad))):
            build_artifact(work, fleet, linear_fits(), "vtc", **({"alpha": 0.0, "rate": 1.0, "seed": 0} | bad))
    with pytest.raises(SettingError, match="policy = 'x'"):
        build_artifact(work, fleet, linear_fits(), "x", alpha=0.0, rate=1.0, seed=0)
    with pytest.raises(FleetError, match="gpu"):
        build_artifact(work, load_fleet("demo-mixed"), linear_fits(), "vtc", alpha=0.0, rate=1.0, seed=0)


@needs_data
@pytest.mark.parametrize("which", sorted(REFERENCE, key=str), ids=str)
def test_figures_of_the_authors_simulator_are_met(which: tuple[str, float, str, float | None]) -> None:
    fleet, rate, policy, alpha = which
    work, times = load_trace(str(DATA / "hexgen_t1.csv")), read_profile(str(DATA / "hexgen_profile_t1.csv"))
    run = run_artifact(work, load_fleet(fleet), times, policy, rate=rate, alpha=alpha, seed=0)
    for figure, value in REFERENCE[which]._asdict().items():
        assert value is None or run[figure] == pytest.approx(value, rel=0.005), figure
