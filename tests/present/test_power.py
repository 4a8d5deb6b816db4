"""Watts, joules and what they were drawn for, with units."""

from control.present import power
from tests.support import details


def test_the_figures_on_top() -> None:
    tiles = {label: (value, below) for label, value, below, _ in power.summary(details.power())}
    assert tiles["Power"] == ("631 W", "of 900 W allowed")
    assert tiles["Context per joule"] == ("56.1 tok/J", "idle billed, last 300 s")
    assert tiles["Without idle"][0] == "61.3 tok/J"
    assert tiles["Per workflow"] == ("2.06 kJ", "without idle 1.88 kJ")
    assert tiles["Idle share"] == ("10.0 %", "of the energy so far; prefill 30 %, decode 60 %")


def test_nothing_drawn_yet_gives_dashes() -> None:
    rows = [details.meter("a", prefill_j=0.0, decode_j=0.0, idle_j=0.0, tokens_per_joule=None)]
    missing = dict.fromkeys(("tokens_per_joule", "tokens_per_joule_idle_billed"))
    shown = details.power(rows, joules_per_workflow_idle_billed=None, joules_per_workflow=None, **missing)
    assert [value for _, value, *_ in power.summary(shown)][1:4] == ["–", "–", "–"]
    assert power.instances(shown).rows[0][-1].text == "–"


def test_tiers_say_how_they_are_capped() -> None:
    rows = [
        details.meter("a", role="prefill", cap_w=200.0),
        details.meter("b", role="decode", cap_w=200.0),
        details.meter("c", role="decode"),
    ]
    assert [row[4].text for row in power.tiers(details.power(rows)).rows] == ["200 W per GPU", "mixed"]
    assert [row[4].text for row in power.tiers(details.power()).rows] == ["no cap", "no cap"]


def test_rows_are_as_wide_as_their_heads_and_shares_sum() -> None:
    for table in (power.tiers(details.power()), power.instances(details.power())):
        assert {len(row) for row in table.rows} == {len(table.heads)}
    row = power.instances(details.power()).rows[0]
    assert [cell.text for cell in row[7:11]] == ["10.0 kJ", "30.0 %", "60.0 %", "10.0 %"]
    assert row[8].hint == "3.00 kJ"


def test_a_replica_of_several_gpus_names_them() -> None:
    (row,) = power.instances(details.power([details.meter("a", gpus=2)])).rows
    assert row[2].text == "2 × A40"
