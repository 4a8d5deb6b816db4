"""Generated work has the published moments, and more of it leaves what was there unchanged."""

import json

import numpy as np
import pytest

from control.errors import SettingError
from control.workload.agents import CODING, AgentShape, agents
from control.workload.generate import generate, generator_names
from control.workload.prompts import step_name
from control.workload.text2sql import Text2SqlShape, text2sql

N = 20_000


@pytest.fixture(scope="module")
def queries():
    return text2sql(N, 1)


def _per_workflow(workload, values):
    return np.bincount(workload.calls["workflow"], weights=values)


#: HexGen-Flow, section 5: mean and p95; the generator meets means within 3 % and p95 within 10 %.
PUBLISHED = {
    "calls": (16.2, 23.0),
    "stages": (11.7, 17.0),
    "input_tokens": (35_000.0, 76_000.0),
    "output_tokens": (1_600.0, 3_000.0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_text2sql_has_the_published_totals(name, queries, laws):
    laws(queries)
    calls = queries.calls
    last = np.append(np.diff(calls["workflow"]) != 0, True)
    totals = {
        "calls": queries.workflows["n_calls"],
        "stages": calls["group"][last] + 1,
        "input_tokens": _per_workflow(queries, calls["input_tokens"]),
        "output_tokens": _per_workflow(queries, calls["output_tokens"]),
    }[name]
    mean, p95 = PUBLISHED[name]
    assert totals.mean() == pytest.approx(mean, rel=0.03)
    assert np.percentile(totals, 95) == pytest.approx(p95, rel=0.10)


def test_text2sql_revises_as_often_as_published(queries):
    revisions = _per_workflow(queries, queries.calls["step"] == queries.steps.index("revise"))
    assert (revisions == 0).mean() == pytest.approx(0.71, abs=0.01)
    assert revisions.mean() == pytest.approx(0.9, rel=0.05)


def test_over_half_of_the_text2sql_input_is_a_shared_prompt(queries):
    share = queries.calls["shared_tokens"].sum() / queries.calls["input_tokens"].sum()
    assert 0.5 < share < 0.65


def test_text2sql_runs_in_the_published_order(queries):
    """Stages come in the order of the template; only evaluations and candidates run side by side."""
    first = queries.calls[: queries.workflows["n_calls"][0]]
    names = [queries.steps[i] for i in first["step"]]
    assert names[0] == "information_retriever"
    assert names[-1] == "unit_tester"
    assert names.index("generate_candidate") < names.index("generate_unit_test") < names.index("evaluate")
    calls = queries.calls
    beside = (np.diff(calls["group"]) == 0) & (np.diff(calls["workflow"]) == 0)
    assert {queries.steps[i] for i in calls["step"][1:][beside]} == {"generate_candidate", "evaluate"}


def test_tenants_take_turns_with_their_slo_scales():
    workload = text2sql(5, 1, tenants=("a", "b"), slo_scales=(1.0, 2.0))
    assert workload.workflows["tenant"].tolist() == [0, 1, 0, 1, 0]
    assert workload.workflows["slo_scale"].tolist() == [1.0, 2.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("make", [text2sql, agents])
def test_more_workflows_only_append(make):
    few, many = make(10, 5), make(30, 5)
    assert np.array_equal(few.calls, many.calls[: len(few.calls)])
    assert not np.array_equal(few.calls, make(10, 6).calls[: len(few.calls)])
    assert not np.array_equal(few.calls, make(10, 5, stream=(1,)).calls[: len(few.calls)])


def _uncached(workload):
    return (workload.calls["input_tokens"] - workload.calls["history_tokens"]).astype(np.int64)


def test_agents_have_one_heavy_prefill_and_a_light_tail(laws):
    workload = agents(3000, 1)
    laws(workload)
    first = workload.calls["group"] == 0
    assert workload.calls["input_tokens"][first].mean() == pytest.approx(15_300, rel=0.02)
    assert _uncached(workload)[first].sum() / _uncached(workload).sum() > 0.9
    assert workload.workflows["n_calls"].min() == 5
    assert workload.workflows["n_calls"].max() == 10


def test_coding_agents_spread_their_prefill_over_the_turns(laws):
    workload = agents(2000, 1, shape=CODING)
    laws(workload)
    first = workload.calls["group"] == 0
    assert _uncached(workload)[first].sum() / _uncached(workload).sum() == pytest.approx(0.17, abs=0.03)
    assert workload.calls["input_tokens"].max() <= CODING.context_most


def test_agents_think_as_long_and_compact_as_often_as_real_ones():
    workload = agents(5000, 1)
    calls = workload.calls
    later = calls["group"] > 0
    pauses = calls["tool_s"][:-1][later[1:]]
    assert (pauses > 60).mean() == pytest.approx(0.18, abs=0.01)
    assert (pauses > 300).mean() == pytest.approx(0.064, abs=0.01)
    shrunk = (np.diff(calls["input_tokens"]) < 0) & (np.diff(calls["workflow"]) == 0)
    assert shrunk.sum() / later.sum() == pytest.approx(0.009, abs=0.002)


def test_agents_context_grows_by_answer_and_appended_tokens():
    workload = agents(200, 2, shape=AgentShape(compaction_share=0.0))
    calls = workload.calls
    next_turn = np.diff(calls["workflow"]) == 0
    context = (calls["input_tokens"] + calls["output_tokens"])[:-1]
    assert np.array_equal(calls["history_tokens"][1:][next_turn], context[next_turn])
    assert (calls["input_tokens"][1:][next_turn] > context[next_turn]).all()


@pytest.mark.parametrize("name", generator_names())
def test_every_name_generates_runnable_work(name, laws):
    workload = generate(name, 25, 3, rate=0.5)
    laws(workload)
    assert len(workload.workflows) == 25
    assert (workload.calls["draw_a"] > 0).all()
    assert np.array_equal(workload.calls, generate(name, 25, 3, rate=0.5).calls)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: generate("poems", 5, 0), "workload = 'poems': expected one of text2sql, agents"),
        (lambda: generate("text2sql", 0, 0), "n = 0: expected a whole number >= 1"),
        (lambda: generate("demo-mixed", 5, 0, rate=-1.0), "rate = -1.0: expected a finite number >= "),
        (lambda: text2sql(5, -1), "seed = -1"),
        (lambda: text2sql(5, 1, tenants=("a",), slo_scales=(1.0, 2.0)), "expected one scale for each"),
        (lambda: agents(5, 1, slo_scales=(0.0,)), "slo_scale = 0.0: expected a number > 0"),
    ],
)
def test_wrong_settings_are_refused(call, what):
    with pytest.raises(SettingError, match=what):
        call()


def test_a_shape_without_revisions_or_tests_makes_short_workflows(laws):
    shape = Text2SqlShape(revisions=(1.0,), unit_test_share=0.0, keywords_share=0.0)
    workload = text2sql(10, 1, shape=shape)
    laws(workload)
    assert set(workload.workflows["n_calls"].tolist()) == {8}


def test_text2sql_prompts_are_as_long_as_the_sample_ones(queries, shared):
    """Mean input of each step within 10 % of a sample generated from the real schemas."""
    lengths = {}
    for line in (shared / "text2sql_generated" / "workflows_400.jsonl").read_text().splitlines():
        for call in json.loads(line)["calls"]:
            lengths.setdefault(step_name(call["stage"]), []).append(call["input_tokens"])
    assert set(lengths) == set(queries.steps)
    for number, step in enumerate(queries.steps):
        own = queries.calls["input_tokens"][queries.calls["step"] == number]
        assert own.mean() == pytest.approx(np.mean(lengths[step]), rel=0.10), step
