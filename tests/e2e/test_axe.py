"""Every page under axe-core: nobody is shut out by a name, a role or a colour that is missing."""

import os
from pathlib import Path

import pytest

from tests.support.running import Start, until
from tests.support.web import is_live

looking = pytest.importorskip("tests.support.looking", reason="playwright is not installed")

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(480)]


@pytest.fixture
def axe() -> Path:
    """The file axe.min.js of the npm package axe-core, which is no part of the project."""
    named = Path(os.environ.get("HEADWAY_AXE", ""))
    if not named.is_file():
        pytest.skip("HEADWAY_AXE names no axe.min.js (npm pack axe-core)")
    return named


@pytest.fixture
def live(start: Start, db: Path, port: int, url: str) -> str:
    """A whole Headway with something on every page."""
    start("up", "--headless", "--port", port, "--db", db, "--speed", 5)
    until(lambda: is_live(url), "live data")
    return url


@pytest.mark.parametrize("size", looking.SIZES)
@pytest.mark.parametrize("theme", looking.THEMES)
def test_no_page_breaks_a_rule_of_serious_impact(live: str, chromium: str, axe: Path, theme: str, size: str) -> None:
    found = {}
    with looking.browser(chromium) as opened, looking.window(opened, theme, looking.SIZES[size]) as page:
        for name in looking.PAGES:
            looking.visit(page, f"{live}/{'' if name == 'fleet' else name}")
            found[name] = looking.findings(page, axe)
    assert {name: broken for name, broken in found.items() if broken} == {}
