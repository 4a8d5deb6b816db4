"""Long live running with an open page: neither the processes nor the page grow, and the data stays fresh.

HEADWAY_SOAK_MINUTES sets how long, of wall time (20); the first SETTLING_S of it are not judged: at speed 10 windows,
kept states and what the tuner learns from fill up until then.
"""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.conftest import Served
from tests.support.browser import Page, visit
from tests.support.running import command_line, descendants
from tests.support.web import health

MINUTES = float(os.environ.get("HEADWAY_SOAK_MINUTES", "20"))
SETTLING_S, EVERY_S = 480.0, 10.0
GROWTH = 1.1
MOST_AGE_S = 3.0

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(60.0 * MINUTES + 600.0)]


class Reading(NamedTuple):
    """Sizes at one moment."""

    at_s: float
    engine_mb: float
    dashboard_mb: float
    heap_mb: float
    nodes: float
    age_s: float


def rss_mb(pid: int) -> float:
    """Resident memory of a process, MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def the(name: str, whole: int) -> int:
    """The process below `headway up` that runs that part."""
    return next(pid for pid in descendants(whole) if name in command_line(pid))


def read(served: Served, page: Page, devtools: Any, began: float) -> Reading:
    """Sizes now, the page's after a garbage collection."""
    whole = served.whole.pid
    devtools.send("HeapProfiler.collectGarbage")
    found = {m["name"]: m["value"] for m in devtools.send("Performance.getMetrics")["metrics"]}
    return Reading(
        time.monotonic() - began,
        rss_mb(the("control.cli engine", whole)),
        rss_mb(the("streamlit run", whole)),
        found["JSHeapUsedSize"] / 2**20,
        float(page.evaluate("document.getElementsByTagName('*').length")),
        float(health(served.url)["age_s"]),
    )


def level(readings: list[Reading], field: str) -> float:
    """The median of a size."""
    values = sorted(getattr(reading, field) for reading in readings)
    return float(values[len(values) // 2])


def test_nothing_grows_over_a_long_run(served: Served, page: Page) -> None:
    visit(page, served.url, "Fleet")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    began, readings = time.monotonic(), list[Reading]()
    while time.monotonic() - began < 60.0 * MINUTES:
        readings.append(read(served, page, devtools, began))
        print(*(f"{name} {value:.1f}" for name, value in readings[-1]._asdict().items()), sep="  ", flush=True)
        page.wait_for_timeout(1000.0 * EVERY_S)
    judged = [reading for reading in readings if reading.at_s >= SETTLING_S]
    third = max(1, len(judged) // 3)
    for field in ("engine_mb", "dashboard_mb", "heap_mb", "nodes"):
        first, last = level(judged[:third], field), level(judged[-third:], field)
        assert last <= GROWTH * first, f"{field}: {first:.1f} → {last:.1f}"
    assert max(reading.age_s for reading in judged) < MOST_AGE_S
