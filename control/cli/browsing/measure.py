"""What sessions cost and see, page by page."""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from control.cli.browsing.chromium import browser
from control.cli.browsing.follower import Followers
from control.cli.browsing.scratch import Scratch, scratch, wide_fleet
from control.cli.browsing.visit import Visit
from control.config import within
from control.errors import SettingError
from control.gateway.speed.measure import machine

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Say = Callable[[str], None]
Row = dict[str, Any]
PAGES = Path(__file__).resolve().parents[3] / "pages"
FIRST = "fleet"  # the page at /
LAB = "whatif"  # the page that forks
FORKS = 5  # clicks, of which the median counts
TRIES = 10  # clicks before, until there is a curve
SETTLE_MS = 5000.0  # from live to the measurement: all a page loads late is there
ZOOMED_MS = 1000.0  # what a zoom itself moves is done by then
QUIET_S = 3.0  # for the dashboard's own CPU time without a session


@dataclass(frozen=True)
class Asked:
    """What is measured. SettingError on a value out of bounds."""

    pages: Sequence[str] = (FIRST,)
    sessions: Sequence[int] = (1,)
    browsers: int = 1
    seconds: float = 30.0
    instances: int = 8

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        known = sorted(path.stem for path in PAGES.glob("[a-z]*.py"))
        for page in self.pages:
            if page not in known:
                raise SettingError(f"--page = {page!r}: expected one of {', '.join(known)}")
        for count in self.sessions:
            within("--sessions", count, 1, 100)
        within("--browsers", self.browsers, 1, 100)
        within("--seconds", self.seconds, 2, 3600)


class Target(NamedTuple):
    """What a session is to keep to."""

    name: str
    limit: float
    is_most: bool = True


TARGETS = (
    Target("cpu_share_per_session", 0.05),
    Target("cpu_share", 0.5),
    Target("bytes_per_refresh", 10_000.0),
    Target("layout_shift", 0.0),
    Target("age_max_s", 2.5),
    Target("first_chart_s", 3.0),
    Target("nodes_kept", 1.0, False),
    Target("zoom_kept", 1.0, False),
)
FEW = 8  # instances: of so many the first curve of a fork is awaited for 1 s, of more for 5
#: Of several sessions the worst counts, except for what a mean describes.
MEANS = ("refreshes_per_s", "bytes_per_refresh")


def measure_dashboard(asked: Asked, say: Say) -> Row:
    """Every page under every number of sessions, over an engine and a dashboard of their own.

    Raises:
        InputError: playwright or a browser is missing.
        MeasureError: engine or dashboard does not come up, or the system has no /proc.
    """
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name, browser() as chromium:
        folder = Path(name)
        fleet = wide_fleet(asked.instances, folder)
        say("starting an engine and a dashboard")
        with scratch(folder, [f"--fleet={fleet}"]) as running:
            quiet = cpu_share(running, time.sleep, QUIET_S)[0]
            runs, skipped = all_runs(chromium, running, asked, say)
    return {
        "command": command(asked),
        "instances": asked.instances,
        "browsers": asked.browsers,
        "seconds": asked.seconds,
        "cpu_share_without_sessions": quiet,
        "runs": runs,
        "skipped": skipped,
        "machine": machine() | {"load_average_before": load, "load_average_after": os.getloadavg()[0]},
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def all_runs(chromium: "Browser", running: Scratch, asked: Asked, say: Say) -> tuple[list[Row], dict[str, str]]:
    """Every page under every number of sessions; those that did not come to an end, and why."""
    from playwright.sync_api import Error

    runs, skipped = [], {}
    for page, count in product(asked.pages, asked.sessions):
        say(f"{page}, sessions: {count}, load average {os.getloadavg()[0]:.1f}")
        try:
            runs.append(one_run(chromium, running, page, count, asked))
        except Error as error:
            skipped[f"{page} x {count}"] = error.message.splitlines()[0]
    return runs, skipped


def one_run(chromium: "Browser", running: Scratch, page: str, count: int, asked: Asked) -> Row:
    """`count` sessions of one page at once, so many of them in a browser as are asked for."""
    url = running.url + ("" if page == FIRST else f"/{page}")
    visits = [Visit(chromium, url) for _ in range(min(count, asked.browsers))]
    try:
        with Followers(url, count - len(visits)) as followers:
            for visit in visits:
                visit.open()
            for visit in visits:
                visit.await_live()
            followers.await_live()
            visits[0].page.wait_for_timeout(SETTLE_MS)
            for visit in visits:
                visit.zoom()
            visits[0].page.wait_for_timeout(ZOOMED_MS)
            curve_s = first_curve_s(visits[0]) if page == LAB else None
            for visit in visits:
                visit.begin()
            followers.begin()
            share, engine, took_s = cpu_share(
                running, lambda s: visits[0].page.wait_for_timeout(1e3 * s), asked.seconds
            )
            seen = [visit.figures(took_s) for visit in visits] + followers.figures(took_s)
    finally:
        for visit in visits:
            visit.close()
    row: Row = {"page": page, "sessions": count, "browsers": len(visits), "first_curve_s": curve_s}
    row |= {"cpu_share": share, "cpu_share_per_session": share / count, "engine_cpu_share": engine, **together(seen)}
    return row | {"targets": verdicts(row, asked.instances)}


def first_curve_s(visit: Visit) -> float | None:
    """From a click on "Fork now" to the first curve, s: the median of FORKS; None where one drew nothing.

    The first that draws anything is not counted: a fleet of a few seconds has nothing to draw arrivals from yet.
    """
    for _ in range(TRIES):
        if visit.fork() is not None:
            break
    took_s = [visit.fork() for _ in range(FORKS)]
    drawn_s = [one for one in took_s if one is not None]
    return median(drawn_s) if len(drawn_s) == FORKS else None


def cpu_share(running: Scratch, wait: Callable[[float], None], seconds: float) -> tuple[float, float, float]:
    """Shares of a core that dashboard and engine use while `wait(seconds)` lasts, and how long that was, s."""
    begun_s = time.monotonic()
    before = running.dashboard.cpu_s(), running.engine.cpu_s()
    wait(seconds)
    after = running.dashboard.cpu_s(), running.engine.cpu_s()
    took_s = time.monotonic() - begun_s
    return (after[0] - before[0]) / took_s, (after[1] - before[1]) / took_s, took_s


def together(seen: Sequence[Row]) -> Row:
    """Figures of all sessions as one: the worst, the mean where that is what is asked; None where none has it."""
    joined: Row = {}
    for name in seen[0]:
        values = [row[name] for row in seen if row.get(name) is not None]
        if not values:
            joined[name] = None
        elif name in MEANS:
            joined[name] = sum(values) / len(values)
        elif name == "moved":
            joined[name] = sorted({node for nodes in values for node in nodes})
        elif isinstance(values[0], bool):
            joined[name] = all(values)
        else:
            joined[name] = median(values) if name == "age_p50_s" else max(values)
    return joined


def verdicts(row: Row, instances: int) -> list[Row]:
    """The targets that apply to the page, and whether they are met."""
    told = []
    curve = Target("first_curve_s", 1.0 if instances <= FEW else 5.0)
    for target in (*TARGETS, curve):
        if row[target.name] is None:
            continue
        value = float(row[target.name])
        met = value <= target.limit if target.is_most else value >= target.limit
        told.append({"name": target.name, "limit": target.limit, "at_most": target.is_most, "value": value, "met": met})
    return told


def command(asked: Asked) -> str:
    """What was run, as far as it differs from the defaults."""
    plain, words = Asked(), ["headway bench dashboard"]
    for name, option in (("pages", "page"), ("sessions", "sessions")):
        if tuple(getattr(asked, name)) != tuple(getattr(plain, name)):
            words += [f"--{option} {value}" for value in getattr(asked, name)]
    for name in ("browsers", "seconds", "instances"):
        if getattr(asked, name) != getattr(plain, name):
            words.append(f"--{name} {getattr(asked, name):g}")
    return " ".join([*words, "--out docs/benchmarks.md"])
