"""Sessions of the dashboard are measured in a real browser; how fast they are depends on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from control.cli.browsing.measure import together, verdicts
from control.cli.browsing.page import BEGIN, END, rewrite
from control.cli.browsing.scratch import wide_fleet
from control.cli.browsing.traffic import Answer, ages_seen
from control.errors import SettingError
from control.gateway.speed.page import BEGIN as OTHER_BEGIN
from control.gateway.speed.page import END as OTHER_END
from control.model.fleet import load_fleet
from tests.support.running import environment, object_of

COMMAND = [sys.executable, "-m", "control.cli", "bench", "dashboard"]


def run(folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command, ended."""
    return subprocess.run(
        [*COMMAND, *options], env=environment(folder, **more), capture_output=True, text=True, timeout=280, check=False
    )


@pytest.mark.bench
def test_a_session_of_two_pages_is_measured_and_the_page_is_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    done = run(tmp_path, "--page=fleet", "--page=workflows", "--seconds=3", "--json", f"--out={page}")
    assert done.returncode == 0, done.stderr
    result = object_of(done.stdout)
    fleet, workflows = result["runs"]
    assert (fleet["page"], workflows["page"]) == ("fleet", "workflows")
    for figures in (fleet, workflows):
        assert figures["sessions"] == 1
        assert 0.0 < figures["cpu_share_per_session"] < 2.0
        assert figures["bytes_per_refresh"] > 100.0
        assert figures["refreshes_per_s"] > 0.0
        assert figures["age_max_s"] >= figures["age_p50_s"] >= 0.0
    assert 0.0 < fleet["first_chart_s"] <= fleet["first_plot_s"]
    assert fleet["nodes_kept"] is True
    assert fleet["zoom_kept"] is True
    assert workflows["zoom_kept"] is None
    assert {target["name"] for target in fleet["targets"]} > {target["name"] for target in workflows["targets"]}
    text = page.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert "| fleet | 1 |" in text


@pytest.mark.bench
def test_sessions_beyond_the_browsers_ask_for_as_much_and_draw_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--page=queues", "--sessions=1", "--sessions=3", "--seconds=6", "--json")
    assert done.returncode == 0, done.stderr
    alone, three = object_of(done.stdout)["runs"]
    assert (alone["browsers"], three["browsers"], three["sessions"]) == (1, 1, 3)
    assert three["refreshes_per_s"] > 0.5
    assert three["bytes_per_refresh"] == pytest.approx(alone["bytes_per_refresh"], rel=0.3)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--browsers=0", "--browsers = 0"),
        ("--page=cellar", "'cellar'"),
        ("--sessions=0", "--sessions = 0"),
        ("--seconds=0", "--seconds = 0"),
        ("--instances=12", "a multiple of 8"),
    ],
)
def test_what_cannot_be_measured_is_named(tmp_path: Path, option: str, told: str) -> None:
    done = run(tmp_path, option)
    assert done.returncode == 2
    assert told in done.stderr.splitlines()[-1]


def test_a_browser_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed")
    done = run(tmp_path, HEADWAY_CHROMIUM="/no/such/browser")
    assert done.returncode == 2
    assert "HEADWAY_CHROMIUM = '/no/such/browser'" in done.stderr.splitlines()[-1]


def test_playwright_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "playwright.py").write_text("raise ImportError('none')\n")
    path = f"{tmp_path}:{environment(tmp_path)['PYTHONPATH']}"
    done = subprocess.run(COMMAND, env={**environment(tmp_path), "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 2
    assert "playwright is not installed" in done.stderr.splitlines()[-1]


def test_a_wide_fleet_has_the_kinds_of_the_demo_in_proportion(tmp_path: Path) -> None:
    fleet = load_fleet(str(wide_fleet(64, tmp_path)))
    kinds = [spec.gpu for spec in fleet.instances]
    assert len(kinds) == 64
    assert (kinds.count("H100"), kinds.count("L4")) == (16, 8)
    with pytest.raises(SettingError, match="multiple of 8"):
        wide_fleet(65, tmp_path)


def test_data_grows_old_between_answers() -> None:
    answers = [Answer(10.0, 900, 0.2), Answer(11.0, 900, 0.3), Answer(14.5, 900, 0.1)]
    assert ages_seen(answers) == pytest.approx([1.2, 3.8, 0.1])


def test_of_several_sessions_the_worst_counts() -> None:
    seen = [
        {"age_max_s": 1.0, "bytes_per_refresh": 100.0, "zoom_kept": True, "moved": ["a"], "first_chart_s": None},
        {"age_max_s": 3.0, "bytes_per_refresh": 300.0, "zoom_kept": False, "moved": ["b", "a"], "first_chart_s": None},
    ]
    assert together(seen) == {
        "age_max_s": 3.0,
        "bytes_per_refresh": 200.0,
        "zoom_kept": False,
        "moved": ["a", "b"],
        "first_chart_s": None,
    }


def test_a_target_is_judged_only_where_the_page_has_such_a_thing() -> None:
    told = {target["name"]: target["met"] for target in verdicts(RUN, 8)}
    assert told["age_max_s"] is False
    assert told["zoom_kept"] is True
    assert "first_chart_s" not in told


def test_sections_of_other_commands_stay(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Ours\n\n{OTHER_BEGIN}\ngateway\n{OTHER_END}\n")
    rewrite(page, RESULT)
    once = page.read_text()
    assert f"{OTHER_BEGIN}\ngateway\n{OTHER_END}" in once
    assert once.count(BEGIN) == once.count(END) == 1
    assert "fleet x 99 was left out: Timeout" in once
    rewrite(page, RESULT)
    assert page.read_text() == once


RUN = {
    "page": "fleet",
    "sessions": 2,
    "cpu_share": 0.1,
    "cpu_share_per_session": 0.05,
    "engine_cpu_share": 0.1,
    "refreshes_per_s": 1.0,
    "bytes_per_refresh": 900.0,
    "age_max_s": 3.0,
    "age_p50_s": 0.5,
    "first_curve_s": None,
    "layout_shift": 0.0,
    "layout_shift_loading": 0.1,
    "first_live_s": 1.0,
    "first_chart_s": None,
    "first_plot_s": None,
    "nodes_kept": None,
    "zoom_kept": True,
}
RESULT = {
    "browsers": 1,
    "command": "headway bench dashboard",
    "date": "2030-01-01",
    "instances": 8,
    "seconds": 30.0,
    "cpu_share_without_sessions": 0.01,
    "machine": {
        "processor": "one",
        "cores": 2,
        "python": "3.11",
        "load_average_before": 0.1,
        "load_average_after": 0.2,
    },
    "skipped": {"fleet x 99": "Timeout"},
    "runs": [RUN | {"targets": [{"name": "age_max_s", "at_most": True, "limit": 2.5, "value": 3.0, "met": False}]}],
}
