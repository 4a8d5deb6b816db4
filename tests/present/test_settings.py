"""What an engine runs with, in words, and the commands that change it."""

import pytest

from control.present import settings
from control.present.live import Limits
from tests.support.snapshots import instance, snapshot

HOLDER = {"host": "box", "pid": 4711}


def facts(**changed: object) -> dict[str, str]:
    rows = settings.engine(snapshot(**changed), HOLDER, lambda at: f"at {at:g}").rows  # type: ignore[arg-type]
    return {row[0].text: row[1].text for row in rows}


def test_the_process_and_its_settings_are_told() -> None:
    shown = facts(form="artifact")
    assert shown["Process"] == "4711 on box"
    assert shown["Started"] == "at 1.79999e+09" or shown["Started"].startswith("at 1.8e+09")
    assert shown["Policy"] == "hexgen, artifact form"
    assert shown["KV retention"] == "observed need, idle ones kept for good"
    assert shown["Live figures over"] == "300 s"
    assert "Requests come in at" not in shown


def test_a_real_fleet_has_an_address_and_no_speed() -> None:
    shown = facts(gateway_url="http://127.0.0.1:8080")
    assert shown["Requests come in at"] == "http://127.0.0.1:8080/v1"
    assert not {"Speed", "Load"} & shown.keys()


def test_an_instance_tells_its_cap_and_who_serves() -> None:
    rows = [
        instance("h100-0", "H100", 700.0, power_cap_w=350.0),
        instance("l4-0", "L4", 72.0, simulated=False, observed={"url": "http://10.0.0.9:8000"}),
    ]
    first, second = settings.fleet({"instances": rows}).rows
    assert [cell.text for cell in first[4:8]] == ["400,000", "256", "350 W", "700 W"]
    assert first[9].text == "simulated"
    assert (second[6].text, second[8].kind, second[9].text) == ("none", "amber", "http://10.0.0.9:8000")


@pytest.mark.parametrize(
    ("age_s", "newest", "words"),
    [
        (86_400.0, 200_000, "24 h, the newest 200,000"),
        (30 * 86_400.0, None, "30 days"),
        (1800.0, None, "30 min"),
        (None, 900, "the newest 900"),
        (None, None, "for good"),
    ],
)
def test_how_long_rows_are_kept(age_s: float | None, newest: int | None, words: str) -> None:
    (row,) = settings.store([("decisions", 12_345, age_s, newest)]).rows
    assert [cell.text for cell in row] == ["decisions", "12,345", words]


def test_thresholds_are_those_of_the_charts() -> None:
    rows = {row[0].text: (row[1].text, row[2].text) for row in settings.thresholds(Limits(debt_s=100.0)).rows}
    assert rows["SLO debt of the fleet"] == ("above 80 s", "above 100 s")
    assert rows["KV cache in use"] == ("from 85 %", "from 95 %")


def test_rows_that_were_only_counted_are_named() -> None:
    assert settings.unstored({}) == settings.unstored({"decisions": 0, "workflows": 0})
    assert "2 placements and 1 ended workflows" in settings.unstored({"decisions": 2, "workflows": 1})


def test_a_command_holds_the_value_of_now_and_no_password() -> None:
    asked = dict(settings.commands(snapshot(scenario="my trace.csv"), "/data/a b.db"))
    assert asked["Scenario"] == "headway up --db '/data/a b.db' --demo 'my trace.csv' --fresh"
    assert asked["Policy and α to start with"].endswith("--policy hexgen --alpha 0.20 --fresh")
    assert settings.file_of("postgresql://user:***@host/db") is None
    assert settings.file_of("sqlite:////tmp/x.db") == "/tmp/x.db"
    assert dict(settings.commands(snapshot(), None))["Seed"] == "headway up --seed 1 --fresh"


def test_a_real_fleet_starts_with_its_file_and_its_address() -> None:
    asked = dict(settings.commands(snapshot(gateway_url="http://127.0.0.1:8080"), None))
    assert asked["Where requests come in"] == "headway up --gateway-host 127.0.0.1 --gateway-port 8080"
    assert len(asked) == 2
