"""Budgets against numbers worked out by hand (HexGen-Flow, section 2)."""

import numpy as np
import pytest

from control.model.templates import DROPS, TEMPLATES
from control.policy.budget import (
    learn_step,
    learn_template,
    plan_workflow,
    refresh_step,
    remaining_s,
    share_budget_s,
    use_template,
)
from control.policy.tables import KIND, Floats, Table
from control.twin.pack import step_table
from tests.support import tables

#: Published times by step on an A100, an A6000 and an L40S, s (HexGen-Flow, section 1).
PUBLISHED_S = {
    "information_retriever": (0.2472, 0.3144, 0.2844),
    "extract_keywords": (1.8235, 2.6706, 2.4602),
    "generate_candidate": (26.7528, 41.3072, 38.4261),
    "revise": (3.1794, 4.8172, 4.4442),
    "unit_tester": (0.2091, 0.2543, 0.2310),
    "generate_unit_test": (3.8959, 6.0725, 5.6427),
    "evaluate": (0.9992, 1.3238, 1.2188),
}
NAMES = tuple(PUBLISHED_S)
FLEET_WEIGHTS = {"two A100, A6000, L40S": (2, 1, 1), "two A100, two A6000": (2, 2, 0), "four A100": (4, 0, 0)}
BASE_SLOS_S = {"two A100, A6000, L40S": 58.907, "two A100, two A6000": 60.234, "four A100": 47.805}


def published_steps(weights: tuple[int, int, int]) -> Table:
    """Steps with the published times, averaged over a fleet of so many of each GPU."""
    table = step_table(NAMES)
    table["mean_exec_s"] = [np.average(times, weights=weights) for times in PUBLISHED_S.values()]
    return table


@pytest.fixture
def steps() -> Table:
    return published_steps((2, 1, 1))


@pytest.fixture
def template() -> Floats:
    """The template of one workflow, [1, steps]."""
    return np.array([[TEMPLATES["text2sql"][name] for name in NAMES]], float)


@pytest.mark.parametrize("fleet", FLEET_WEIGHTS)
def test_time_of_the_whole_template_is_the_published_base_slo(fleet: str, template: Floats) -> None:
    table = published_steps(FLEET_WEIGHTS[fleet])
    assert remaining_s(template, table, 0) == pytest.approx(BASE_SLOS_S[fleet], abs=6e-4)


def test_on_time_every_call_gets_its_own_mean_time(steps: Table, template: Floats) -> None:
    slo_s = remaining_s(template, steps, 0)
    use_template(template, steps, 0, 0)
    own_s = steps["mean_exec_s"][0]
    assert own_s == pytest.approx(0.2733)
    assert share_budget_s(slo_s, 0.0, own_s, remaining_s(template, steps, 0)) == pytest.approx(own_s)


def test_time_lost_is_a_debt_shared_in_proportion(steps: Table, template: Floats) -> None:
    """After 20 s in two stages worth 2.5 s, the candidate gets its share of the 38.907 s left."""
    for step in (0, 1):
        use_template(template, steps, 0, step)
    use_template(template, steps, 0, NAMES.index("generate_candidate"))
    own_s, later_s = steps["mean_exec_s"][2], remaining_s(template, steps, 0)
    assert own_s == pytest.approx(33.309725)
    assert later_s == pytest.approx(58.907 - 0.2733 - 2.19445 - 33.309725, abs=6e-4)
    expected_s = 38.907 * 33.309725 / (33.309725 + 23.129525)
    assert share_budget_s(58.907, 20.0, own_s, later_s) == pytest.approx(expected_s, rel=1e-4)


@pytest.mark.parametrize(("elapsed_s", "budget_s"), [(6.0, 2.0), (10.0, 0.0), (14.0, -2.0)])
def test_budget_falls_through_zero(elapsed_s: float, budget_s: float) -> None:
    """SLO 10 s, this call 1 s, the rest of the template 1 s."""
    assert share_budget_s(10.0, elapsed_s, 1.0, 1.0) == budget_s


def test_last_call_gets_all_that_is_left() -> None:
    assert share_budget_s(10.0, 4.0, 0.3, 0.0) == 6.0


def test_step_no_longer_in_the_template_removes_nothing(steps: Table, template: Floats) -> None:
    keywords = NAMES.index("extract_keywords")
    use_template(template, steps, 0, keywords)
    before = template.copy()
    use_template(template, steps, 0, keywords)
    assert (template == before).all()


def test_first_unit_tester_drops_the_remaining_revises(steps: Table, template: Floats) -> None:
    revise, tester = NAMES.index("revise"), NAMES.index("unit_tester")
    assert DROPS == {"unit_tester": "revise"}
    use_template(template, steps, 0, revise)
    assert template[0, revise] == 3
    use_template(template, steps, 0, tester)
    assert template[0, revise] == 0
    assert template[0, tester] == 2


def test_templates_of_other_workflows_stay(steps: Table, template: Floats) -> None:
    both = np.repeat(template, 2, axis=0)
    use_template(both, steps, 1, 0)
    assert (both[0] == template[0]).all()
    assert both[1, 0] == template[0, 0] - 1


def test_history_is_a_running_mean_that_starts_at_what_is_declared() -> None:
    """Weight 20 at 308 and 5 tokens, then two calls of 518 and 26."""
    cost, fleet = tables.costs({}, decode_ms=10.0, mix_ms=20.0), tables.instances({})
    table = step_table(("information_retriever",))
    for _ in range(2):
        learn_step(cost, fleet, table, tables.calls({"input_tokens": 518, "emitted": 26, "tool_s": 1.1})[0])
    assert table["seen"][0] == 22.0
    assert table["mean_input"][0] == pytest.approx((20 * 308 + 2 * 518) / 22)
    assert table["mean_output"][0] == pytest.approx((20 * 5 + 2 * 26) / 22)
    assert table["mean_tool_s"][0] == pytest.approx(2 * 1.1 / 22)
    assert table["mean_prefill_s"][0] == pytest.approx(0.020)
    assert table["mean_exec_s"][0] == pytest.approx(0.020 + 0.010 * (152 / 22 - 1))


def test_length_that_was_cut_short_is_learned_as_it_was_seen() -> None:
    """20 calls' worth of 5 tokens, then one that would have generated 99 and was cut at 26."""
    table = step_table(("information_retriever",))
    [call] = tables.calls({"input_tokens": 308, "emitted": 26, "output_tokens": 99})
    learn_step(tables.costs({}), tables.instances({}), table, call)
    assert table["mean_output"][0] == pytest.approx((20 * 5 + 26) / 21)


def test_step_time_follows_the_fleet() -> None:
    cost, table = tables.costs({}, decode_ms=10.0, mix_ms=20.0), step_table(("chat",))
    refresh_step(cost, tables.instances({}, {"host_ms": 2.0}), table, 0)
    assert table["mean_exec_s"][0] == pytest.approx(0.020 + 0.010 * 199 + 0.001 * 200)


def test_template_of_a_kind_is_the_mean_of_the_workflows_that_ended() -> None:
    """Two stages of the first step and one of the second, then four of the first: 3 and 1/2 on average."""
    kinds, templates = tables.table(KIND, {}, {}), np.zeros((2, 2))
    learn_template(templates, kinds, 1, np.array([2.0, 1.0]))
    assert templates.tolist() == [[0.0, 0.0], [2.0, 1.0]]
    learn_template(templates, kinds, 1, np.array([4.0, 0.0]))
    assert templates.tolist() == [[0.0, 0.0], [3.0, 0.5]]
    assert kinds["seen"].tolist() == [0.0, 2.0]


def test_declared_template_is_never_learned() -> None:
    kinds, templates = tables.table(KIND, {"declared": 1}), np.array([[4.0, 1.0]])
    learn_template(templates, kinds, 0, np.array([9.0, 9.0]))
    assert templates.tolist() == [[4.0, 1.0]]
    assert kinds["seen"][0] == 0.0


def test_part_of_an_entry_is_used_up_and_never_owed(steps: Table) -> None:
    """Half an entry is left after one and a half; the next use takes it, not more."""
    learned = np.zeros((1, len(NAMES)))
    learned[0, 0] = 1.5
    for left in (0.5, 0.0, 0.0):
        use_template(learned, steps, 0, 0)
        assert learned[0, 0] == left


def test_plan_is_the_mean_times_over_the_template() -> None:
    """Two entries of 1 s prefill and 3 s decode with 0.5 s of tools, half a one of 4 s and 2 s."""
    table = tables.steps(4.0, 6.0)
    table["mean_prefill_s"], table["mean_tool_s"] = (1.0, 4.0), (0.5, 0.0)
    [workflow] = tables.workflows({"kind": 1})
    plan_workflow(np.array([[9.0, 9.0], [2.0, 0.5]]), table, workflow)
    assert workflow["plan_prefill_s"] == 2 * 1.0 + 0.5 * 4.0
    assert workflow["plan_decode_s"] == 2 * 3.0 + 0.5 * 2.0
    assert workflow["plan_tool_s"] == 2 * 0.5


def test_kind_nobody_has_seen_is_planned_as_nothing() -> None:
    [workflow] = tables.workflows({})
    plan_workflow(np.zeros((1, 1)), tables.steps(4.0), workflow)
    assert workflow["plan_prefill_s"] + workflow["plan_decode_s"] + workflow["plan_tool_s"] == 0.0
