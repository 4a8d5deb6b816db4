"""A scenario started from its page: its fleet, its story, and the strip that tells it on the other pages."""

import re

import pytest

from control.workload.scenarios import scenario
from storage import commands
from tests.e2e.conftest import Served
from tests.support.browser import Page, expect, follow, now, panel, visit

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_scenario_is_started_from_its_card_and_tells_its_story(served: Served, page: Page) -> None:
    wanted = scenario("power-cap")
    visit(page, f"{served.url}/scenarios", "Scenarios")
    page.get_by_label("Seed").fill("7")
    panel(page, "card-power-cap").get_by_role("button", name="Start").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("power-cap begins at 0 s with seed 7")
    expect(dialog).to_contain_text(re.compile(r"\d+ active workflows? with it"))
    dialog.get_by_role("button", name="Start power-cap").click()
    expect(panel(page, "told").locator("h2").first).to_contain_text(wanted.title)
    expect(panel(page, "told").locator("h2").first).to_contain_text("seed 7")
    told = now(served.store)
    assert (told["scenario"], told["seed"], told["fleet_name"]) == ("power-cap", 7, wanted.fleet)
    (row,) = commands.recent(served.store, 9)
    assert (row["kind"], row["expected"], row["state"]) == ("scenario", "demo-mixed", "applied")
    steps = panel(page, "told").locator("[class*=st-key-step-]")
    expect(steps).to_have_count(3)
    expect(panel(page, "told").locator(".tbl-acts")).to_contain_text(wanted.script[0].words)
    expect(panel(page, "card-power-cap")).to_contain_text("Start again")
    follow(page, "Fleet")
    expect(page.locator(".st-key-story-strip")).to_contain_text("Story 1 of 3")
    expect(page.get_by_test_id(re.compile("^instance-"))).to_have_count(4)
