"""A cap's bounds, and its effect as the engine's own model gives it."""

import pytest

from control.model.costs import cost_table
from control.model.hardware import profile
from control.present import caps
from tests.support import details


def test_targets_are_tiers_all_and_instances() -> None:
    rows = details.power()["rows"]
    assert caps.targets(rows) == ["prefill", "decode", "all", "a40-0", "a40-1", "a40-2"]
    assert caps.targets([details.meter("a"), details.meter("b")]) == ["all", "a", "b"]
    assert [row["instance"] for row in caps.chosen(rows, "decode")] == ["a40-1", "a40-2"]
    assert len(caps.chosen(rows, "all")) == 3


def test_bounds_are_what_all_take_in_whole_watts() -> None:
    assert caps.bounds([details.meter("a")]) == (105.0, 300.0)
    small = details.meter("b", "L4", lowest_cap_w=25.2, tdp_w=72.0)
    assert caps.bounds([small]) == (26.0, 72.0)
    assert caps.bounds([details.meter("a"), small]) is None


def test_the_cap_in_force_is_what_a_command_expects() -> None:
    assert caps.in_force([details.meter("a"), details.meter("b")]) == "no cap"
    assert caps.in_force([details.meter("a", cap_w=200.0)]) == 200.0
    assert caps.in_force([details.meter("a", cap_w=200.0), details.meter("b")]) == "mixed"


def test_the_effect_is_that_of_the_cost_table() -> None:
    row = details.meter("a40-1")
    found, tokens = profile("A40", "Qwen3-0.6B"), row["max_num_batched_tokens"]
    free, capped = (cost_table(found, 256, tokens, cap) for cap in (None, 200.0))
    effect = caps.effect(row, 200.0)
    slower = caps.prefill_ms(capped, tokens) / caps.prefill_ms(free, tokens)
    assert effect.prefill_x == pytest.approx(slower)
    assert effect.decode_x == pytest.approx(capped.decode_ms[0, 64] / free.decode_ms[0, 64])
    assert effect.decode_w == (pytest.approx(free.power_w[256]), pytest.approx(capped.power_w[256]))
    assert effect.prefill_j[1] < effect.prefill_j[0]


def test_a_cap_at_the_tdp_changes_nothing_and_lifting_one_speeds_up() -> None:
    free, capped = details.meter("a"), details.meter("b", cap_w=150.0)
    assert caps.effect(free, 300.0) == caps.effect(free, None)
    assert caps.effect(free, None).prefill_x == 1.0
    assert caps.effect(capped, None).decode_x < 1.0


def test_watts_are_those_of_one_gpu_of_a_replica() -> None:
    two = details.meter("a", "H100", gpus=2, lowest_cap_w=245.0, tdp_w=700.0)
    assert caps.effect(two, 350.0).decode_w[1] <= 350.0


def test_the_table_has_a_column_for_each_kind_of_gpu_and_units_in_every_cell() -> None:
    rows = [details.meter("a"), details.meter("b"), details.meter("c", "A100", lowest_cap_w=140.0, tdp_w=400.0)]
    table = caps.predicted(caps.effects(rows, 200.0))
    assert [head.text for head in table.heads] == ["Predicted", "A40", "A100"]
    shown = [[cell.text for cell in row] for row in table.rows]
    assert [text[-5:] for text in shown[0][1:]] == ["×0.99", "×1.04"]
    assert shown[2][1].endswith(" W")
    assert " → " in shown[2][1]
    assert shown[3][1].endswith(" mJ")


@pytest.mark.parametrize(
    ("before", "after", "kind", "sign"),
    [(None, 105.0, "num amber", "▲"), (105.0, None, "num good", "▼"), (105.0, 110.0, "num", "×")],
)
def test_a_slower_time_is_amber_and_a_faster_one_good(
    before: float | None, after: float | None, kind: str, sign: str
) -> None:
    decode = caps.predicted(caps.effects([details.meter("a", cap_w=before)], after)).rows[1][1]
    assert (decode.kind, decode.text[0]) == (kind, sign)
