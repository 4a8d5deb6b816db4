"""What fills the KV caches, in shares with a sign where they run full."""

from control.present import occupancy
from tests.support import details


def tiles(**changed: object) -> dict[str, tuple[str, str, str]]:
    return {label: (value, below, state) for label, value, below, state in occupancy.summary(details.kv(**changed))}


def test_totals_are_over_all_caches() -> None:
    shown = tiles()
    assert shown["Running"] == ("40.0 %", "of 1.20 M tokens", "")
    assert shown["Idle pinned"] == ("30.0 %", "other cached 10.0 %", "")
    assert shown["Room for"] == ("18", "conversations of 15.9 k tokens, the mean now", "")
    assert shown["Given up"][:2] == ("114 k tokens", "evicted; 6 calls preempted")
    assert shown["KV moved"][:2] == ("9", "transfers, 144 k tokens")


def test_a_full_cache_turns_amber_then_red_each_with_a_sign() -> None:
    rows = [details.cache("a", 0.86, 0.0), details.cache("b", 0.96, 0.0, cached_tokens=0, free_tokens=16_000)]
    cells = [row[3] for row in occupancy.instances(details.kv(rows=rows)).rows]
    assert [(cell.text, cell.kind) for cell in cells] == [("▲ 86.0 %", "num amber"), ("✕ 96.0 %", "num late")]
    assert tiles(rows=rows)["Running"][2] == "amber"


def test_without_conversations_there_is_no_room_to_judge() -> None:
    rows = [details.cache("a", headroom=None, reserved_tokens=0)]
    shown = tiles(rows=rows, mean_context_tokens=None, holders=[])
    assert shown["Room for"] == ("–", "conversations none is open to judge by", "")
    (row,) = occupancy.instances(details.kv(rows=rows)).rows
    assert (row[7].text, row[8].text) == ("–", "–")


def test_no_room_for_one_more_is_a_warning() -> None:
    assert tiles(rows=[details.cache("a", headroom=0.4)])["Room for"][2] == "amber"


def test_who_holds_most_is_drawn_to_scale() -> None:
    shown = occupancy.holders(details.kv())
    assert [row[3].bar for row in shown.rows] == [1.0, 0.5]
    assert [row[5].text for row in shown.rows] == ["◌ idle", "▲ held"]
    assert {len(row) for row in shown.rows} == {len(shown.heads)}
    assert shown.rows[0][0].conversation == 312
