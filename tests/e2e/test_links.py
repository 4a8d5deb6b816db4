"""Every page by its address, and addresses that open one fork, workflow, placement, run or conversation."""

from typing import Any

import pytest

from storage import commands, readers, runs
from storage.open import Store
from tests.e2e.conftest import Served
from tests.support.browser import Page, expect, now, panel, visit
from tests.support.running import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TITLES = {
    "": "Fleet",
    "queues": "Queues",
    "workflows": "Workflows",
    "decisions": "Decisions",
    "conversations": "Conversations",
    "kv": "KV",
    "power": "Power",
    "servers": "Servers",
    "debt": "SLO debt",
    "tuning": "Tuning",
    "whatif": "What-if",
    "scenarios": "Scenarios",
    "audit": "Audit",
    "settings": "Settings",
}


@pytest.mark.slow
def test_each_page_opens_by_its_address(served: Served, page: Page) -> None:
    for name, title in TITLES.items():
        visit(page, f"{served.url}/{name}", title)
        expect(page.locator(".st-key-phone-nav a")).to_have_count(len(TITLES))
        expect(page.locator("[data-testid=stException]")).to_have_count(0)


def a_fork(store: Store) -> dict[str, Any]:
    """A small fork of the live engine, asked for now."""
    spec = {"minutes": 1, "seeds": 1, "settings": [{"name": "half the load", "load": 0.5}]}
    number = commands.submit(store, "whatif", {"spec": spec}, "a test")

    def done() -> dict[str, Any] | None:
        found = runs.recent(store, 3, kind="whatif", with_result=True)
        return next((r for r in found if r["params"]["command"] == number and r["result"]["state"] == "done"), None)

    run: dict[str, Any] = until(done, "the fork")
    return run


@pytest.mark.slow
def test_a_link_to_a_fork_and_one_of_its_settings(served: Served, page: Page) -> None:
    run = a_fork(served.store)
    visit(page, f"{served.url}/whatif?fork={run['id']}&setting=1", "What-if")
    expect(panel(page, "forecast")).to_contain_text(f"#{run['id']}: Forked at")
    expect(page.locator(".hw-said")).to_contain_text("half the load: P95")
    expect(panel(page, "apply").locator(".promise")).to_contain_text("half the load")
    visit(page, f"{served.url}/whatif?fork=999999", "What-if")
    expect(panel(page, "forecast")).to_contain_text("No fork 999999 is in the store")


@pytest.mark.slow
def test_a_link_to_a_workflow(served: Served, page: Page) -> None:
    (ended,) = until(lambda: readers.workflows(served.store, 1), "a workflow that ended")
    visit(page, f"{served.url}/workflows?workflow={ended['id']}", "Workflows")
    expect(panel(page, "selected").locator("h2").first).to_have_text(f"Workflow #{ended['id']}")
    expect(panel(page, "selected").locator("svg.main-svg").first).to_be_visible()
    visit(page, f"{served.url}/debt?workflow={ended['id']}", "Workflows")  # as links were once
    expect(panel(page, "selected").locator("h2").first).to_have_text(f"Workflow #{ended['id']}")


@pytest.mark.slow
def test_a_link_to_a_placement(served: Served, page: Page) -> None:
    (made,) = until(lambda: readers.decisions(served.store, 1), "a placement")
    visit(page, f"{served.url}/decisions?decision={made['id']}", "Decisions")
    expect(panel(page, "selected").locator("h2").first).to_have_text(f"Placement {made['id']}")
    expect(panel(page, "selected").locator(".tbl-receipt")).to_contain_text(made["instance"])


@pytest.mark.slow
def test_a_link_to_a_conversation(served: Served, page: Page) -> None:
    def kept() -> int | None:
        rows = (readers.detail(served.store) or {"conversations": {"rows": ()}})["conversations"]["rows"]
        return rows[0]["workflow"] if rows else None

    number = until(kept, "a conversation")
    visit(page, f"{served.url}/conversations?conversation={number}", "Conversations")
    expect(panel(page, "selected").locator("h2").first).to_have_text(f"Conversation #{number}")
    expect(panel(page, "selected").locator("svg.main-svg").first).to_be_visible()


@pytest.mark.slow
def test_a_link_to_a_tuning_run_and_to_its_twin_run(served: Served, page: Page) -> None:
    until(lambda: now(served.store)["sim_s"] > 60.0, "a past to replay")
    commands.submit(served.store, "tune", {}, "a test")
    (run,) = until(lambda: runs.recent(served.store, 1, kind="tune", with_result=True), "the tuning run")
    visit(page, f"{served.url}/tuning?run={run['id']}", "Tuning")
    expect(panel(page, "selected").locator("h2").first).to_have_text(f"Tuning run {run['id']}")
    if twin := run["result"].get("predicted_run"):
        visit(page, f"{served.url}/tuning?run={twin}", "Tuning")
        expect(panel(page, "selected").locator("h2").first).to_have_text(f"Twin run {twin}")
