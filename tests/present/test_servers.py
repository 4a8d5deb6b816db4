"""What is said of real servers: well or not, fresh or not, and how far predictions are off."""

from typing import Any

from control.present import servers
from tests.support.seen import SEEN
from tests.support.snapshots import instance, snapshot


def seen(**changed: Any) -> dict[str, Any]:
    """A snapshot of one real server beside a simulated one."""
    row = instance("s", "H100", 700.0, simulated=False, observed=SEEN | changed)
    return snapshot(instances=[row, instance("t", "L4", 72.0)])


def words(table: Any) -> list[str]:
    return [cell.text for row in table.rows for cell in row]


def test_only_real_servers_are_listed() -> None:
    assert [row["name"] for row in servers.real(seen())] == ["s"]
    assert servers.summary(seen())[0][:3] == ("Servers ready", "1 of 1", "1 simulated beside them")


def test_nought_and_nothing_are_told_apart() -> None:
    cells = words(servers.health(seen(seen_running=None)))
    assert "–" in cells
    assert "0 %" in cells or "0.00 %" in cells


def test_stale_and_missing_metrics_are_said_in_words() -> None:
    assert "stale, 12 s" in words(servers.health(seen(metrics="stale", metrics_age_s=12.0)))
    assert "missing" in words(servers.health(seen(metrics="missing", metrics_age_s=None)))


def test_a_server_that_is_taken_out_is_red_with_its_reason() -> None:
    table = servers.health(seen(health="sick", reason="connect call failed"))
    assert "▲ taken out" in words(table)
    assert "connect call failed" in words(table)
    assert servers.summary(seen(health="sick"))[0][3] == "late"


def test_drift_beyond_the_limit_is_marked() -> None:
    (row,) = servers.predictions(seen()).rows
    assert [cell.text for cell in row][4:7] == ["100 ms", "150 ms", "+50 %"]
    assert "late" in row[6].kind
    assert "late" not in row[9].kind


def test_without_comparisons_there_are_dashes() -> None:
    none = dict.fromkeys(("predicted_ttft_s", "ttft_s", "predicted_tpot_s", "tpot_s", "ttft_drift", "tpot_drift"))
    assert words(servers.predictions(seen(compared=0, **none))).count("–") == 6
