"""Every page in a real browser: in both themes and two sizes, as a picture or under axe-core's eyes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"""
PAGES = (
    *("fleet", "queues", "workflows", "decisions", "conversations", "kv", "power", "servers", "debt"),
    *("tuning", "whatif", "scenarios", "audit", "settings"),
)
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
THEMES = ("light", "dark")
GRAVE = ("serious", "critical")
#: Until the script of a page has run, and then for the charts, ms.
PATIENCE_MS, SETTLE_MS = 60_000, 1_500


class Finding(NamedTuple):
    """A rule of axe-core that an element breaks."""

    rule: str
    impact: str
    target: str
    markup: str


@contextmanager
def browser(executable: str = "/usr/bin/chromium") -> Iterator[Browser]:
    """A browser of our own."""
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=executable, args=FLAGS.split())
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def window(opened: Browser, theme: str, size: tuple[int, int]) -> Iterator[Page]:
    """A page of `size` px whose viewer prefers `theme`."""
    context = opened.new_context(
        color_scheme="dark" if theme == "dark" else "light", viewport={"width": size[0], "height": size[1]}
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    try:
        yield page
    finally:
        context.close()


def visit(page: Page, address: str) -> None:
    """Open `address` and wait until it stands still."""
    page.goto(address)
    page.locator(".stApp[data-test-script-state=notRunning]").wait_for(state="attached")
    page.locator(".hw-title, .face").first.wait_for()
    page.wait_for_timeout(SETTLE_MS)


def linked(page: Page, kind: str) -> str:
    """Address of the first `kind` (workflow, decision) that the page in view links to; "" without one."""
    links = page.locator(f'a[href*="?{kind}="]')
    return str(links.first.get_attribute("href")) if links.count() else ""


def findings(page: Page, axe: Path) -> list[Finding]:
    """What axe-core finds of serious or critical impact on the page in view."""
    page.evaluate(axe.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        Finding(rule["id"], node["impact"] or "", " ".join(map(str, node["target"])), node["html"][:160])
        for rule in found["violations"]
        for node in rule["nodes"]
        if node["impact"] in GRAVE
    ]
