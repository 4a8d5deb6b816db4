"""The pin table, its filters and totals, and one conversation's turns as words and rows."""

from typing import Any

import pytest

from control.present import conversations, gantt
from control.present.conversations import Filter
from tests.support import details


def texts(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in conversations.table(rows).rows]


def test_a_row_has_a_unit_on_every_number_and_a_sign_on_every_state() -> None:
    held, broken, fresh = texts(details.conversations()["rows"])
    assert broken[:5] == ["#312", "analytics", "h100-0", "◌ idle", "18.4 k tok"]
    assert broken[5:10] == ["18.5 k tok", "6.20 s", "2 of 7", "93.1 %", "14 s"]
    assert broken[10:] == ["✕ 1", "evicted", "1"]
    assert (held[2], held[3], held[5], held[6]) == ("none", "▲ held", "–", "–")
    assert (fresh[3], fresh[8], fresh[10], fresh[11]) == ("● decode", "–", "0", "")


def test_heads_and_rows_are_of_one_width() -> None:
    table = conversations.table(details.conversations()["rows"])
    assert {len(row) for row in table.rows} == {len(table.heads)}


def test_a_conversation_that_no_policy_pins_is_marked() -> None:
    (row,) = texts([details.conversation(1, pinned=False)])
    assert row[2] == "h100-0 ·"


def test_a_filter_leaves_what_it_names() -> None:
    shown = details.conversations()
    assert conversations.choices(shown, "decoder") == ["all", "a100-0", "h100-0", "none"]
    assert conversations.choices(shown, "state") == ["all", "decode", "held", "idle"]
    assert [row["workflow"] for row in conversations.matching(shown, Filter(decoder="none"))] == [311]
    assert [row["workflow"] for row in conversations.matching(shown, Filter(state="idle"))] == [312]
    assert conversations.matching(shown, Filter(tenant="nobody")) == []
    assert len(conversations.matching(shown, Filter())) == 3


def test_held_conversations_turn_their_tile_amber() -> None:
    tiles = {
        label: (value, below, state) for label, value, below, state in conversations.summary(details.conversations())
    }
    assert tiles["Held"] == ("1", "wait for a decoder with room", "amber")
    assert tiles["KV moved"][1] == "transfers so far, 141 k tokens; 0 now"
    assert all(state == "" for label, (_, _, state) in tiles.items() if label != "Held")
    quiet = conversations.summary(details.conversations(held=0))
    assert all(not state for *_, state in quiet)


def test_what_is_left_out_is_said() -> None:
    shown = details.conversations(open=150)
    assert conversations.extent(shown, shown["rows"][:1]).startswith("1 of 3 listed; 147 more are open:")
    assert "150 are open in all" in conversations.nobody(shown, "conserve")
    assert "No conversation is open under hexgen" in conversations.nobody(details.conversations([]), "hexgen")


def test_turns_are_drawn_with_what_they_waited_for_and_where_the_kv_was_lost() -> None:
    row = details.conversation(312)
    turns = conversations.timeline(row)
    assert [turn["stage"] for turn in turns] == ["turn 1", "turn 2"]
    figure = gantt.figure(turns, None, None, row["elapsed_s"])
    lost = next(trace for trace in figure["data"] if trace["name"] == "KV lost")
    assert (lost["x"], lost["y"], lost["customdata"]) == ([13.0], [1], ["others needed the blocks"])
    assert gantt.legend(turns) == ["queue", "prefill", "KV transfer", "decode", "tool", "KV lost"]
    assert figure["layout"]["yaxis"]["ticktext"] == ["turn 1", "turn 2"]
    assert [a["text"] for a in figure["layout"]["annotations"]] == ["now 24.2 s"]


@pytest.mark.parametrize(("state", "turns", "first"), [("idle", 9, "turn 8"), ("decode", 9, "turn 9")])
def test_older_turns_that_are_not_told_keep_their_numbers(state: str, turns: int, first: str) -> None:
    told = conversations.timeline(details.conversation(1, state=state, turns=turns))
    assert told[0]["stage"] == first


def test_facts_are_one_sentence() -> None:
    said = conversations.facts(details.conversation(312))
    assert said == (
        "analytics, on h100-0, idle for 6.20 s, 2 of 7 turns ended, broke 1 time, last because others needed the "
        "blocks; open for 24.2 s"
    )
    fresh = details.conversation(313, decoder=None, state="held", idle_s=None, breaks=0)
    assert "its KV is nowhere, held, 2 of 7 turns ended, never broke" in conversations.facts(fresh)
