"""Endless scenarios: any minute on its own, the same each time; more load only adds work."""

import time
from dataclasses import replace

import numpy as np
import pytest

from control.errors import SettingError
from control.workload.arrivals import arrange
from control.workload.generate import generate
from control.workload.scenarios import WINDOW_IDS, scenario, scenario_names, window
from control.workload.text2sql import text2sql
from control.workload.windows import window_count, windowed

DEMO = scenario("demo-mixed")


@pytest.mark.parametrize("name", scenario_names())
@pytest.mark.parametrize("index", [0, 7])
def test_a_window_holds_what_arrives_in_its_minute(name, index, laws):
    got = window(scenario(name), 1, index)
    laws(got)
    arrivals = got.workflows["arrival_s"]
    assert len(arrivals)
    assert ((arrivals >= 60 * index) & (arrivals < 60 * (index + 1))).all()
    assert (got.workflows["id"] // WINDOW_IDS == index).all()
    streams = np.unique(got.calls["stream"][got.calls["stream"] >= 0])
    assert streams.tolist() == list(range(got.n_streams))


def test_a_window_is_the_same_each_time_and_differs_from_the_next():
    first, again, following = window(DEMO, 1, 3), window(DEMO, 1, 3), window(DEMO, 1, 4)
    assert first.workflows.tobytes() == again.workflows.tobytes()
    assert first.calls.tobytes() == again.calls.tobytes()
    assert first.calls.tobytes() != following.calls.tobytes()
    assert first.calls.tobytes() != window(DEMO, 2, 3).calls.tobytes()


def test_names_and_shared_prompts_keep_their_numbers_from_window_to_window():
    windows = [window(DEMO, 1, index, load) for index in range(20) for load in (0.05, 1.0)]
    assert len({(w.kinds, w.tenants, w.steps, w.n_shared) for w in windows}) == 1
    prompts = {}
    for w in windows:
        for call in w.calls[w.calls["shared_tokens"] > 0]:
            assert prompts.setdefault(int(call["shared_key"]), int(call["step"])) == call["step"]
    assert len(prompts) == 6


@pytest.mark.parametrize(("less", "more"), [(0.3, 1.0), (1.0, 1.6), (1.6, 4.0), (0.0, 0.2)])
def test_more_load_only_adds_workflows(less, more):
    def contents(load):
        got = window(DEMO, 1, 2, load)
        fields = ["group", "step", "input_tokens", "output_tokens", "draw_a", "draw_b"]
        return {
            int(row["id"]): got.calls[fields][row["first_call"] :][: row["n_calls"]].tolist() for row in got.workflows
        }

    small, large = contents(less), contents(more)
    assert len(small) < len(large)
    assert small.items() <= large.items()


def test_the_rate_is_as_stated_and_swings():
    counts = np.array([len(window(DEMO, 1, index).workflows) for index in range(60)])
    assert counts.sum() / 3600 == pytest.approx(DEMO.rate, rel=0.05)
    crest, trough = counts[:15].sum() + counts[30:45].sum(), counts[15:30].sum() + counts[45:].sum()
    assert crest / trough > 1.1
    doubled = sum(len(window(DEMO, 1, index, 2.0).workflows) for index in range(60))
    assert doubled / counts.sum() == pytest.approx(2.0, rel=0.1)


def test_the_demo_mixes_two_tenants_and_agents():
    work = generate("demo-mixed", 2000, 1)
    kinds = np.array(work.kinds)[work.workflows["kind"]]
    tenants = np.array(work.tenants)[work.workflows["tenant"]]
    assert (kinds == "agent").mean() == pytest.approx(DEMO.agent_share, abs=0.03)
    assert set(tenants[kinds == "agent"]) == {"assistants"}
    for tenant, scale in (("analytics", 1.0), ("reporting", 2.0)):
        own = tenants == tenant
        assert own.mean() == pytest.approx(0.425, abs=0.03)
        assert set(work.workflows["slo_scale"][own]) == {scale}


def test_a_window_takes_milliseconds():
    window(DEMO, 1, 0)
    took = []
    for index in range(5):
        began = time.process_time()
        window(DEMO, 1, index)
        took.append(time.process_time() - began)
    assert min(took) < 0.02


def test_a_quiet_window_is_empty_and_merges(laws):
    quiet = window(replace(DEMO, rate=0.001), 1, 0)
    assert len(quiet.workflows) == len(quiet.calls) == 0
    assert quiet.kinds == window(DEMO, 1, 0).kinds


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: scenario("party"), "scenario = 'party': expected one of demo-mixed"),
        (lambda: window(DEMO, 1, -1), "window = -1"),
        (lambda: window(DEMO, 1, 0, 11.0), "load_scale = 11.0: expected a number from 0 to 10"),
        (lambda: window(replace(DEMO, rate=500.0), 1, 0), "rate = 500.0: expected a peak well below 167"),
        (lambda: windowed(text2sql(1, 1), -1), "window = -1"),
    ],
)
def test_wrong_settings_are_refused(call, what):
    with pytest.raises(SettingError, match=what):
        call()


def test_windows_of_a_finite_workload_add_up_to_it(laws):
    whole = arrange(text2sql(100, 1), rate=0.4, seed=1)
    parts = [windowed(whole, index) for index in range(window_count(whole))]
    assert sum(len(piece.workflows) for piece in parts) == 100
    assert np.array_equal(np.concatenate([p.workflows["id"] for p in parts]), whole.workflows["id"])
    assert np.array_equal(np.concatenate([p.calls["draw_a"] for p in parts]), whole.calls["draw_a"])
    for index, piece in enumerate(parts):
        if len(piece.workflows):
            laws(piece)
            assert (piece.workflows["arrival_s"] // 60 == index).all()
