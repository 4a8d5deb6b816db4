"""Arrivals, deadlines and draws: reproducible, comparable across rates, true to what was recorded."""

import numpy as np
import pytest

from control.errors import SettingError
from control.workload.agents import agents
from control.workload.arrivals import arrange
from control.workload.load import load_trace
from control.workload.text2sql import text2sql


@pytest.fixture
def timed(file):
    rows = "".join(f"2023-11-16 18:00:{s:02d},{10 + s},5\n" for s in (0, 10, 40))
    return load_trace(file("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows))


def test_recorded_times_stay_without_a_rate(timed):
    assert arrange(timed, seed=1).workflows["arrival_s"].tolist() == [0.0, 10.0, 40.0]


def test_scale_plays_recorded_times_faster(timed):
    assert arrange(timed, scale=4.0).workflows["arrival_s"].tolist() == [0.0, 2.5, 10.0]


def test_recorded_with_a_rate_keeps_the_pattern_at_that_mean_rate(timed):
    assert arrange(timed, rate=0.2, process="recorded").workflows["arrival_s"].tolist() == [0.0, 2.5, 10.0]


def test_a_trace_without_times_arrives_at_a_tenth_a_second():
    for process in ("poisson", "recorded"):
        got = arrange(agents(2000, 0), process=process, seed=2)
        assert 2000 / got.workflows["arrival_s"][-1] == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(("process", "cv"), [("poisson", 1.0), ("gamma", 0.5), ("gamma", 3.0)])
def test_gaps_have_the_asked_mean_and_spread(process, cv):
    gaps = np.diff(arrange(agents(20_000, 0), rate=5.0, process=process, cv=cv, seed=7).workflows["arrival_s"])
    assert gaps.mean() == pytest.approx(0.2, rel=0.06)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)


def test_gaps_scale_with_the_rate_and_draws_do_not_depend_on_it():
    workload = text2sql(50, 1)
    slow, fast = (arrange(workload, rate=rate, seed=9) for rate in (0.5, 1.0))
    np.testing.assert_allclose(slow.workflows["arrival_s"], 2 * fast.workflows["arrival_s"])
    for name in ("draw_a", "draw_b"):
        assert np.array_equal(slow.calls[name], fast.calls[name])
        assert slow.calls[name].mean() == pytest.approx(0.5, abs=0.05)
    assert not np.array_equal(slow.calls["draw_a"], slow.calls["draw_b"])


def test_another_seed_gives_other_chance_and_the_same_seed_the_same():
    workload = text2sql(50, 1)
    first, again, other = (arrange(workload, rate=1.0, seed=seed) for seed in (1, 1, 2))
    assert first.workflows.tobytes() == again.workflows.tobytes()
    assert first.calls.tobytes() == again.calls.tobytes()
    assert not np.array_equal(first.calls["draw_a"], other.calls["draw_a"])
    assert not np.array_equal(first.workflows["arrival_s"], other.workflows["arrival_s"])


def test_slo_scale_multiplies_scales_and_stated_deadlines():
    workload = text2sql(4, 1, tenants=("a", "b"), slo_scales=(1.0, 2.0))
    workload.workflows["slo_s"][0] = 10.0
    got = arrange(workload, rate=1.0, slo_scale=1.5).workflows
    assert got["slo_scale"].tolist() == [1.5, 3.0, 1.5, 3.0]
    assert got["slo_s"][0] == 15.0
    assert np.isnan(got["slo_s"][1:]).all()


def test_arranging_leaves_the_given_workload_alone():
    workload = text2sql(4, 1)
    arrange(workload, rate=1.0, slo_scale=2.0, seed=3)
    assert np.isnan(workload.workflows["arrival_s"]).all()
    assert (workload.calls["draw_a"] == 0).all()


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ({"rate": 0.0}, "rate = 0.0: expected a finite number > 0"),
        ({"rate": float("nan")}, "rate = nan"),
        ({"cv": -1.0}, "cv = -1.0"),
        ({"scale": float("inf")}, "scale = inf"),
        ({"slo_scale": 0.0}, "slo_scale = 0.0"),
        ({"process": "weekly"}, "process = 'weekly': expected one of poisson, gamma, recorded"),
        ({"seed": -1}, "seed = -1: expected a whole number >= 0"),
    ],
)
def test_settings_out_of_bounds_are_refused(setting, what):
    with pytest.raises(SettingError, match=what):
        arrange(text2sql(2, 1), **setting)
