"""An operator at a live fleet: alpha, drains, kills, late workflows, receipts, and a colleague at the same controls.

All tests share one `headway up`. Each starts from what it finds, and touches an instance of its own.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from storage import commands, finders, readers
from storage.open import Store
from tests.e2e.conftest import Served
from tests.support.browser import (
    Browser,
    Locator,
    Page,
    away_from,
    choose,
    expect,
    follow,
    move_alpha,
    now,
    panel,
    viewer,
    visit,
)
from tests.support.running import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture
def store(served: Served) -> Store:
    """The tests' own view of the store."""
    return served.store


@pytest.fixture
def fleet(served: Served, page: Page) -> Page:
    """The fleet page, live."""
    visit(page, served.url, "Fleet")
    return page


@pytest.fixture
def colleague(served: Served, browser: Browser) -> Iterator[Page]:
    """The fleet page in another session."""
    with viewer(browser) as page:
        visit(page, served.url, "Fleet")
        yield page


def of_kind(store: Store, kind: str) -> dict[str, Any]:
    """The newest command of a kind."""
    return next(row for row in commands.recent(store, 50) if row["kind"] == kind)


def pick_instance(page: Page, name: str) -> None:
    """Choose an instance in the control panel."""
    choose(page, page.locator(".st-key-instance [data-testid=stSelectbox]"), name)


def told(page: Page) -> Any:
    """The lines that tell what is applied and what became of the last command."""
    return page.locator(".st-key-command-state")


def test_alpha_moved_with_the_keyboard_is_applied_and_undone(fleet: Page, store: Store) -> None:
    old = now(store)["alpha"]
    steps = away_from(old)
    new = round(old + steps / 100, 2)
    move_alpha(fleet, steps)
    fleet.get_by_role("button", name="Apply").click()
    expect(told(fleet)).to_contain_text(f"Applied α {new:.2f}")
    expect(told(fleet)).to_contain_text("✓ applied")
    row = of_kind(store, "alpha")
    assert (row["payload"], row["expected"], row["state"]) == ({"alpha": new}, old, "applied")
    (event,) = [event for event in readers.events(store, 0.0, 99) if event["command_id"] == row["id"]]
    assert (event["kind"], event["old"], event["new"]) == ("alpha", old, new)
    until(lambda: readers.decisions(store, 1)[0]["alpha"] == new, "a decision under the new alpha")
    after = [made for made in readers.decisions(store, 10_000) if made["sim_s"] > row["sim_s"]]
    assert {made["alpha"] for made in after} == {new}
    line = fleet.locator(f".st-key-change-c{row['id']}")
    expect(line).to_contain_text(f"α {old:.2f} → {new:.2f}")
    line.get_by_role("button", name="Undo").click()
    expect(told(fleet)).to_contain_text(f"Applied α {old:.2f}")
    expect(line.get_by_role("button", name="Undo")).to_have_count(0)


@pytest.mark.slow
def test_of_two_operators_the_second_is_told_and_refused(fleet: Page, colleague: Page, store: Store) -> None:
    old = now(store)["alpha"]
    steps = away_from(old)
    theirs, ours = round(old + steps / 100, 2), round(old + 2 * steps / 100, 2)
    move_alpha(fleet, 2 * steps)
    move_alpha(colleague, steps)
    colleague.get_by_role("button", name="Apply").click()
    expect(told(colleague)).to_contain_text(f"Applied α {theirs:.2f}")
    expect(told(fleet)).to_contain_text(f"Someone else changed it meanwhile: {old:.2f} → {theirs:.2f}")
    fleet.get_by_role("button", name="Apply").click()
    until(lambda: of_kind(store, "alpha")["payload"]["alpha"] == ours, "our command")
    until(lambda: of_kind(store, "alpha")["state"] != "pending", "what became of it")
    row = of_kind(store, "alpha")
    assert row["state"] == "refused"
    assert f"it is {theirs} now" in row["reason"]
    assert now(store)["alpha"] == theirs


def test_a_drain_says_what_it_takes_before_the_click(fleet: Page, store: Store) -> None:
    until(lambda: (readers.detail(store) or {}).get("forecasts"), "forecasts of the engine")
    pick_instance(fleet, "l40s-0")
    fleet.get_by_role("button", name="Drain", exact=True).click()
    dialog = fleet.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"Drain l40s-0: \d+ calls? running and \d+ queued there are finished"))
    expect(dialog).to_contain_text(re.compile(r"That takes about \d"))
    commands.submit(store, "drain", {"instance": "l4-0"}, "a colleague")  # what would draw the page anew
    expect(fleet.get_by_test_id("instance-l4-0")).to_have_attribute("data-state", re.compile("dr"))
    commands.submit(store, "undrain", {"instance": "l4-0"}, "a colleague")
    expect(fleet.get_by_test_id("instance-l4-0")).to_have_attribute("data-state", "up")
    dialog.get_by_role("button", name="Drain l40s-0").click(delay=50)
    expect(fleet.get_by_test_id("instance-l40s-0")).to_have_attribute("data-state", re.compile("dr"))
    expect(dialog).to_have_count(0)
    row = of_kind(store, "drain")
    assert (row["payload"], row["state"]) == ({"instance": "l40s-0"}, "applied")
    fleet.get_by_role("button", name="Undrain", exact=True).click()
    expect(fleet.get_by_test_id("instance-l40s-0")).to_have_attribute("data-state", "up")


@pytest.mark.slow
def test_killing_an_instance_asks_first_and_shows_it_down(fleet: Page, store: Store) -> None:
    pick_instance(fleet, "l4-0")
    fleet.get_by_role("button", name="Kill", exact=True).click()
    dialog = fleet.get_by_role("dialog")
    expect(dialog).to_contain_text("Now it would lose")
    dialog.get_by_role("button", name="Kill l4-0").click()
    expect(fleet.get_by_test_id("instance-l4-0")).to_have_attribute("data-state", "do")
    assert of_kind(store, "kill")["payload"] == {"instance": "l4-0"}
    fleet.get_by_role("button", name="Revive", exact=True).click()
    expect(fleet.get_by_test_id("instance-l4-0")).to_have_attribute("data-state", "up")


def test_workflows_are_filtered_and_one_is_opened_to_its_timeline(served: Served, page: Page, browser: Browser) -> None:
    wanted = finders.Workflows("analytics", "text2sql", "completed")
    until(lambda: finders.ended(served.store, wanted, 1)[1], "a workflow of the tenant that ended")
    visit(page, f"{served.url}/workflows", "Workflows")
    for box, value in (("Tenant", "analytics"), ("Kind", "text2sql"), ("Status", "completed")):
        choose(page, page.locator("[data-testid=stSelectbox]").filter(has_text=box), value)
        page.wait_for_url(f"**{box.lower()}={value}**")
    expect(page.locator(".tbl-listed tbody tr").filter(has_text="running")).to_have_count(0)
    rows = page.locator(".tbl-listed tbody tr")
    expect(rows.filter(has_text="analytics").first).to_be_visible()
    expect(rows.filter(has_text="reporting")).to_have_count(0)
    name = rows.first.locator("a").inner_text()
    rows.locator("a", has_text=re.compile(f"^{re.escape(name)}$")).click()
    expect(panel(page, "selected").locator("h2").first).to_have_text(f"Workflow {name}")
    expect(panel(page, "selected").locator("svg.main-svg .bars path").first).to_be_visible()
    assert f"workflow={name.lstrip('#')}" in page.url
    with viewer(browser) as other:
        visit(other, page.url, "Workflows")
        expect(panel(other, "selected").locator("h2").first).to_have_text(f"Workflow {name}")
        expect(panel(other, "selected").locator("svg.main-svg .bars path").first).to_be_visible()
        expect(other.locator(".tbl-listed tbody tr").filter(has_text="reporting")).to_have_count(0)


def placed_and_ended(store: Store) -> dict[str, Any] | None:
    """The newest placement with a runner-up whose workflow has ended."""
    made = (row for row in readers.decisions(store, 400) if row["runner_up"] is not None)
    return next((row for row in made if readers.workflow(store, row["workflow"])), None)


@pytest.mark.slow
def test_a_receipt_tells_what_the_runner_up_would_have_cost(served: Served, page: Page) -> None:
    made = until(lambda: placed_and_ended(served.store), "a placement whose workflow has ended")
    visit(page, f"{served.url}/decisions?workflow={made['workflow']}", "Decisions")
    page.locator(f'.tbl-placements a[href$="?decision={made["id"]}"]').click()
    receipt = panel(page, "selected")
    expect(receipt.locator("h2").first).to_have_text(f"Placement {made['id']}")
    expect(receipt.locator(".tbl-receipt tr").filter(has_text="✓ chosen")).to_contain_text(made["instance"])
    expect(receipt.locator(".tbl-receipt tr").filter(has_text="runner-up")).to_contain_text(made["runner_up"])
    receipt.get_by_role("button", name=f"What would {made['runner_up']} have cost?").click()
    expect(receipt.locator(".proposal")).to_contain_text(f"On {made['runner_up']} the workflow would have taken")
    expect(receipt.locator(".tbl-regret")).to_contain_text("Latency of the workflow")
    expect(receipt).to_contain_text("Replayed from")


def picked(page: Page, box: Locator, name: str) -> bool:
    """Pick an option of the box; False, as whether the pick was taken shows in a moment."""
    box.get_by_role("combobox").click()
    page.get_by_role("option", name=name, exact=True).click()
    page.keyboard.press("Escape")
    return False


@pytest.mark.slow
def test_shadows_are_chosen_and_their_gap_is_shown(served: Served, page: Page) -> None:
    visit(page, f"{served.url}/whatif", "What-if")
    shadows = panel(page, "shadows")
    begin = shadows.get_by_role("button", name="Run in the shadow")
    until(lambda: begin.is_enabled() or picked(page, shadows, "edf"), "the choice is taken")
    begin.click()
    row = shadows.locator(".tbl-shadows tbody tr").filter(has_text="edf")
    expect(row.locator("td").nth(2)).to_have_text(re.compile(r"^([+−]?[\d.,]+ (ms|s|min)|0 s)$"))
    expect(shadows.locator(".tbl-shadows tbody tr").first).to_contain_text("in force")
    assert [told["policy"] for told in now(served.store)["shadows"]] == ["edf"]


@pytest.mark.slow
def test_pause_stops_simulated_time_and_resume_lets_it_go(fleet: Page, store: Store) -> None:
    fleet.get_by_role("button", name="Pause", exact=True).click()
    resume = fleet.get_by_role("button", name="Resume", exact=True)
    expect(resume).to_be_visible()
    until(lambda: now(store)["paused"], "the pause")
    resume.click()
    expect(fleet.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    until(lambda: not now(store)["paused"], "the end of the pause")


@pytest.mark.slow
def test_pages_are_reached_from_the_navigation_and_stay_live(fleet: Page) -> None:
    for title in ("Queues", "KV", "Power", "SLO debt", "Fleet"):
        follow(fleet, title)
        expect(fleet.get_by_test_id("live-badge")).to_contain_text(re.compile("live", re.I))
