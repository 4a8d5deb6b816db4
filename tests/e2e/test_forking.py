"""What-if at a live engine: fork, pick, apply, undo; a promise that breaks; a fork taken along as a file."""

import re
from pathlib import Path
from typing import Any

import pytest

from storage import commands, forks, readers, runs
from storage.open import Store
from tests.e2e.conftest import Served
from tests.support.browser import Page, expect, follow, now, panel, visit
from tests.support.running import Start, object_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SMALL = {"minutes": 1, "seeds": 2}


@pytest.fixture
def store(served: Served) -> Store:
    """The tests' own view of the store."""
    return served.store


@pytest.fixture
def forked(store: Store) -> dict[str, Any]:
    """A small fork of the live engine with one other alpha, done."""
    alpha = other_than(now(store)["alpha"])
    spec = SMALL | {"settings": [{"name": f"α {alpha:.2f}", "alpha": alpha}]}
    number = commands.submit(store, "whatif", {"spec": spec}, "a test")
    found: dict[str, Any] = until(lambda: done(store, number), "the fork")
    return found


def other_than(alpha: float) -> float:
    """An alpha of the sweep far from the one in force."""
    return 0.2 if alpha > 0.5 else 0.8


def done(store: Store, command: int | None = None) -> dict[str, Any] | None:
    """The newest fork that is done and has its file; of that command where given."""
    for run in runs.recent(store, 5, kind="whatif", with_result=True):
        mine = command is None or run["params"]["command"] == command
        if mine and run["result"]["state"] == "done" and forks.payload(store, run["id"]):
            return run
    return None


def newest_apply(store: Store, run: int) -> dict[str, Any] | None:
    """The newest command that applied a setting of that fork."""
    rows = (row for row in commands.recent(store, 20) if row["kind"] == "apply_whatif")
    return next((row for row in rows if row["payload"]["run"] == run), None)


def test_fork_now_pick_apply_and_undo_it_from_the_audit(served: Served, page: Page, store: Store) -> None:
    old = now(store)["alpha"]
    wanted = other_than(old)
    visit(page, f"{served.url}/whatif", "What-if")
    page.get_by_label("Minutes ahead").fill("1")
    page.get_by_label("Seeds").fill("2")
    page.get_by_role("button", name="Fork now").click()
    expect(page.locator(".hw-o-line").first).to_have_attribute("d", re.compile("^M"))  # the first curve
    run = until(lambda: done(store), "the fork")
    spec = run["params"]["spec"]
    assert (spec["minutes"], spec["seeds"], len(spec["settings"])) == (1.0, 2, 12)
    page.locator(".tbl-settings tbody tr").filter(has_text=f"α {wanted:.2f}").click()
    apply = panel(page, "apply")
    expect(apply.locator(".commands")).to_contain_text(f"α {wanted:.2f}")
    apply.get_by_role("slider").press("Home")  # nothing watches
    expect(apply).to_contain_text("Nothing watches it")
    apply.get_by_role("button", name=f"Apply α {wanted:.2f}").click()
    until(lambda: now(store)["alpha"] == wanted, "the alpha in force")
    command = newest_apply(store, run["id"])
    assert command is not None
    assert (command["state"], command["payload"]["guard_minutes"]) == ("applied", 0.0)
    follow(page, "Audit")
    line = page.locator(f".st-key-audit-c{command['id']}")
    expect(line).to_contain_text(f"apply α {wanted:.2f} of fork #{run['id']}")
    expect(line).to_contain_text(f"α {old:.2f} → {wanted:.2f}")
    expect(line).to_contain_text("✓ applied")
    line.get_by_role("button", name="Undo").click()
    until(lambda: now(store)["alpha"] == old, "the alpha of before")
    expect(panel(page, "audit")).to_contain_text(f"undo of #{command['id']}: take back what was applied of fork")
    expect(line).to_have_count(0)


def test_a_promise_that_breaks_is_rolled_back_and_the_page_says_so(
    served: Served, page: Page, store: Store, forked: dict[str, Any]
) -> None:
    old, setting = now(store)["alpha"], forked["result"]["settings"][1]
    for row in forked["result"]["settings"]:  # a promise that nothing can keep
        band = row["lines"]["p95_s"]
        band["low"], band["high"] = [0.0] * len(band["low"]), [0.001] * len(band["high"])
    runs.update(store, forked["id"], forked["result"])
    until(lambda: now(store)["fleet"]["p95_s"], "a P95 that can be judged")
    visit(page, f"{served.url}/whatif?fork={forked['id']}&setting=1", "What-if")
    apply = panel(page, "apply")
    slider = apply.get_by_role("slider")
    slider.press("Home")
    slider.press("ArrowRight")
    expect(apply).to_contain_text("in the next 1 min")
    apply.get_by_role("button", name=f"Apply {setting['name']}").click()
    expect(apply).to_contain_text(f"{setting['name']} was rolled back")
    expect(page.locator(".tbl-forks tr").filter(has_text=f"#{forked['id']}")).to_contain_text("rolled back")
    until(lambda: now(store)["alpha"] == old, "the alpha of before in force")
    kinds = [event["kind"] for event in readers.events(store, 0.0, 5)]
    assert kinds[:2] == ["rolled_back", "alpha"]
    apply.get_by_role("button", name="Undo in the audit").click()
    expect(panel(page, "audit")).to_contain_text(f"{setting['name']} taken back")
    command = newest_apply(store, forked["id"])
    assert command is not None
    assert (command["state"], command["payload"]["guard_minutes"]) == ("applied", 1.0)
    expect(page.locator(f".st-key-audit-c{command['id']}")).to_have_count(0)  # nothing is left to undo


@pytest.mark.slow
def test_a_fork_taken_along_as_a_file_comes_to_the_same(
    served: Served, page: Page, forked: dict[str, Any], start: Start, tmp_path: Path
) -> None:
    visit(page, f"{served.url}/whatif?fork={forked['id']}", "What-if")
    with page.expect_download() as begun:
        page.locator(".st-key-export-fork button").click()
    name = begun.value.suggested_filename
    begun.value.save_as(tmp_path / name)
    again = start("whatif", name, "--json")
    assert again.wait() == 0
    assert object_of(again.stdout)["same"] is True
    expect(page.locator(".st-key-fork-tools")).to_contain_text(f"headway whatif {name} --json")
