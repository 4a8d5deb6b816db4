"""A receipt reads as what was compared, and a replay as what the runner-up would have cost."""

from typing import Any

import pytest

from control.policy.codes import FILTERS
from control.present import decisions
from control.present.decisions import Filter
from tests.support.decisions import candidate, placement, replay


def row(**changed: Any) -> dict[str, Any]:
    return {"id": 1} | placement() | changed


def run(**changed: Any) -> dict[str, Any]:
    params, result = replay(1, **changed)
    return {"id": 9, "kind": "regret", "params": params, "result": result}


def test_every_reason_of_the_rules_has_words() -> None:
    assert set(FILTERS) - {""} == set(decisions.REASONS)


def test_the_chosen_and_the_runner_up_are_marked_and_bars_are_shares_of_the_longest() -> None:
    table = decisions.receipt(row())
    assert [[cell.text for cell in r[:2]] for r in table.rows] == [["h100-0", "✓ chosen"], ["a100-0", "runner-up"]]
    assert [(r[3].bar, r[5].bar) for r in table.rows] == [(0.8 / 1.2, 1.0), (1.0, 4.0 / 9.5)]
    assert [r[7].text for r in table.rows] == ["now", "400 ms ago"]


def test_an_instance_that_was_none_is_below_with_its_reason() -> None:
    assert [cell.text for cell in decisions.filtered(row()).rows[0]][:2] == ["l4-0", "draining"]
    counts = {"down": 1, "too_long": 12}
    assert decisions.unlisted(row(filtered=counts)) == "No candidates: 12 × the context is too long for it, 1 × down."
    assert decisions.unlisted(row(filtered={})) == ""


def test_terms_that_the_rule_does_not_ask_for_are_dashes() -> None:
    only_blocks = [candidate("h100-0", 900.0), candidate("a100-0", 400.0, t_comp_s=None)]
    table = decisions.receipt(row(policy="conserve", runner_up=None, candidates=only_blocks))
    assert [cell.text for cell in table.rows[1]][1:3] == ["runner-up", "–"]
    assert "free KV blocks" in table.heads[6].hint


def test_without_a_receipt_its_own_terms_remain() -> None:
    bare = row(candidates=None, filtered=None)
    assert "kept no more" in decisions.no_receipt(bare)
    assert (decisions.receipt(bare).rows, decisions.filtered(bare).rows, decisions.unlisted(bare)) == ([], [], "")


def test_what_became_of_the_call_is_read_from_its_workflow() -> None:
    call = {"call": 1001, "ready_s": 2.0, "first_token_s": 3.5, "finished_s": 9.0, "state": "completed"}
    ended = {"timeline": [call], "latency_s": 30.0, "slo_s": 40.0}
    assert (
        decisions.became(row(), ended) == "It completed: TTFT 1.50 s, ended after 7 s, its workflow took 30 s of 40 s."
    )
    assert "not ended yet" in decisions.became(row(), None)
    assert "not kept" in decisions.became(row(), ended | {"timeline": None})
    lost = decisions.became(row(), ended | {"timeline": [call | {"first_token_s": None, "state": "refused"}]})
    assert lost.startswith("It was refused: ended after 7 s")


@pytest.mark.parametrize(
    ("difference_s", "words"), [(4.2, "taken 4.20 s longer"), (-1.5, "taken 1.50 s less"), (0.0, "the same time")]
)
def test_the_verdict_names_what_the_runner_up_would_have_cost(difference_s: float, words: str) -> None:
    assert words in decisions.verdict(run(difference_s=difference_s))


def test_a_replay_says_whether_it_comes_to_the_same_end() -> None:
    assert "the very same end" in decisions.replayed(run())
    assert "off by +2 s" in decisions.replayed(run(is_exact=False, replayed_s=32.0))


def test_instances_that_do_not_differ_are_left_out() -> None:
    assert [r[0].text for r in decisions.by_instance(run()).rows] == ["h100-0"]
    assert [cell.text for cell in decisions.regret(run()).rows[0]][1:] == ["30 s", "34.2 s", "+4.20 s"]
    assert [cell.text for cell in decisions.regret(run()).heads][1:3] == ["h100-0", "a100-0"]


def test_what_cannot_be_told_has_a_sentence_and_no_table() -> None:
    untold = {"params": {"decision": 1}, "result": {"problem": "no placement 1 is in the store"}}
    assert decisions.verdict(untold) == "The runner-up cannot be told: no placement 1 is in the store."
    assert (decisions.regret(untold).rows, decisions.by_instance(untold).rows, decisions.replayed(untold)) == (
        [],
        [],
        "",
    )


def test_filters_become_arguments_of_the_reader() -> None:
    assert decisions.asked(Filter()) == {"close_only": False}
    wanted = Filter(stage="turn", workflow="12", calls=decisions.CLOSE)
    assert decisions.asked(wanted) == {"stage": "turn", "workflow": 12, "close_only": True}
    assert decisions.asked(Filter(workflow="x"))["workflow"] == -1
    assert "matches" in decisions.nothing(wanted)
    assert decisions.choices([row(), row(workflow=9)], ["h100-0"], "workflow") == ["all", "9", "100"]
