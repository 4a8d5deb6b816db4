"""ConServe again: the setup is the paper's, its conventions move what they should, and its figures are met."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control.policy.codes import ROLES
from control.tuning.conserve_reference import FITTED, RATES, SATURATING, cells
from control.tuning.conserve_setup import Caps, fleet_of, standalone
from control.tuning.reproduce_coding import Case, read_coding_work, reproduce_coding
from control.tuning.reproduce_conserve import Setup, is_published, reproduce_conserve
from control.workload.conserve_runs import arrive, generated, leading_turns, without_think_time
from control.workload.load import load_trace

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TRACE, CODING = DATA / "conserve_swebench.csv", DATA / "claude_code" / "requests.csv"
needs_data = pytest.mark.skipif(not TRACE.is_file(), reason="the paper's trace is not on this machine")
FULL = (Caps(300.0, 300.0),)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """The paper's trace at two rates, uncapped."""
    work = without_think_time(leading_turns(load_trace(str(TRACE)), 5))
    return reproduce_conserve(work, Setup((1.0, SATURATING), FULL, (0.0, 10.0), 5, 42))


def run_of(result: dict[str, Any], **which: Any) -> dict[str, Any]:
    """The first run that `which` describes: the paper's conventions come first."""
    run: dict[str, Any] = next(r for r in result["runs"] if all(r[key] == value for key, value in which.items()))
    return run


def test_caps_go_to_the_tiers_and_without_tiers_to_the_first_engine() -> None:
    tiers = fleet_of("conserve", Caps(300.0, 200.0)).instances
    assert [(s.role, s.power_cap_w) for s in tiers] == [("prefill", 300.0)] + [("decode", 200.0)] * 3
    mixed = fleet_of("collocated", Caps(300.0, 200.0)).instances
    assert [s.power_cap_w for s in mixed] == [300.0, 200.0, 200.0, 200.0]
    assert {(s.role, s.max_num_batched_tokens) for s in mixed} == {("mixed", 2944)}
    assert {s.role for s in (*tiers, *mixed)} <= set(ROLES)


def test_arrivals_are_those_of_the_seed_and_scale_with_the_rate() -> None:
    work = generated(2, 42)
    at_1, at_2 = (arrive(work, rate, 42).workflows["arrival_s"] for rate in (1.0, 2.0))
    assert at_1[0] == pytest.approx(np.random.default_rng(42).exponential(1.0))
    np.testing.assert_allclose(at_1, 2.0 * at_2)
    draws = [arrive(work, rate, 42).calls["draw_b"] for rate in (1.0, 2.0)]
    np.testing.assert_array_equal(*draws)  # the same turns go wrong at every rate


def test_generated_conversations_are_of_the_papers_kind() -> None:
    work = generated(5, 42)
    calls = work.calls
    assert (len(work.workflows), len(calls), work.n_shared) == (255, 1275, 0)
    assert calls["input_tokens"][calls["group"] == 0].mean() == pytest.approx(15_300, rel=0.05)
    assert int((calls["input_tokens"] + calls["output_tokens"]).max()) <= 40_960
    assert not is_published(work, Setup(RATES, FULL, (10.0,), 5, 42))


def test_alone_means_alone() -> None:
    work = without_think_time(generated(2, 0))
    alone = standalone(work)
    assert not alone.queue_s.any()
    assert not alone.hold_s.any()
    assert (alone.e2e_s > alone.ttfet_s).all()


def test_every_cell_of_the_paper_is_there_once_and_the_fit_uses_three() -> None:
    keys = [(c.policy, c.rate, c.caps, c.error, c.figure) for c in cells()]
    assert len(keys) == len(set(keys)) == 12 * 6 + 6 * 6 + 15 + 3 * 10
    assert len(FITTED) == 3
    assert {(c.policy, c.rate, c.caps, c.figure) for c in cells()} >= FITTED


@needs_data
def test_the_papers_latencies_are_met_by_its_conventions(found: dict[str, Any]) -> None:
    bounds = {"conserve": 0.10, "collocated": 0.30, "ampd": 0.10}
    rows = [row for row in found["reference"] if row["figure"] in ("ttfet_p95", "tbt_p95", "e2e_p95")]
    rows = [row for row in rows if row["rate"] == 1.0 or row["policy"] in ("conserve", "collocated")]
    assert len(rows) == 2 * 6 + 3
    for row in rows:
        if row["policy"] in bounds:
            assert abs(row["difference"]) < bounds[row["policy"]], row


@needs_data
def test_conserve_violates_nothing_where_the_others_do(found: dict[str, Any]) -> None:
    at = {"rate": SATURATING, "need": "oracle"}
    assert run_of(found, policy="conserve", **at)["violations"] == {"ttfet": 0.0, "tbt": 0.0, "e2e": 0.0}
    assert run_of(found, policy="ampd", error=10.0, **at)["violations"]["ttfet"] > 5.0
    assert run_of(found, policy="collocated", **at)["violations"]["tbt"] > 5.0
    assert run_of(found, policy="full-disagg", **at)["violations"]["ttfet"] > 95.0


@needs_data
def test_ampd_without_error_is_conserve_and_conventions_leave_waits_out(found: dict[str, Any]) -> None:
    at = {"rate": SATURATING, "need": "oracle"}
    conserve, exact = run_of(found, policy="conserve", **at), run_of(found, policy="ampd", error=0.0, **at)
    assert exact["ttfet_p95"] == conserve["ttfet_p95"]
    assert conserve["kv_sent"] == 255, "KV moves once a conversation"
    counted = run_of(found, policy="conserve", rate=SATURATING, need="observed")
    assert counted["prefill_queue"]
    assert counted["ttfet_p95"] > 1.5 * conserve["ttfet_p95"]


@needs_data
def test_joules_sum_up_and_idle_is_billed_on_top(found: dict[str, Any]) -> None:
    for run in found["runs"]:
        parts = run["prefill_j"] + run["decode_j"] + run["idle_j"]
        assert parts == pytest.approx(run["energy_j"])
        assert run["context_tokens"] == 20_114_359
        assert run["tokens_per_joule_idle_billed"] <= run["tokens_per_joule"]


@needs_data
def test_a_retention_limit_frees_idle_kv_and_is_paid_in_recomputed_tokens() -> None:
    work = read_coding_work(str(CODING))
    cases = (Case("conserve"), Case("conserve", 60.0))
    kept, limited = reproduce_coding(work, 42, rates=(0.05,), cases=cases)["runs"]
    assert limited["idle_kv_mean"] < 0.5 * kept["idle_kv_mean"]
    assert limited["recomputed_tokens"] > kept["recomputed_tokens"]
    assert kept["idle_kv_peak"] <= 1.0
    assert any("sub-agents" in line for line in work.problems)
