"""The pictures of the guide: a Headway that has run for a while, its pages opened one after the other."""

import io
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from control.cli.browsing.chromium import browser
from control.cli.browsing.scratch import Scratch, scratch, wait_until
from control.cli.browsing.visit import SIZE
from storage import commands, finders, readers, runs
from storage.open import Store, open_store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Say = Callable[[str], None]
PHONE = (390, 844)
PATIENCE_MS = 90_000
OLD_S = 1200.0  # simulated age of the fleet in the pictures, s
SPEED = 8.0  # of the clock
SETTLE_MS = 2500.0  # after the last wait: fragments and figures are drawn
COLOURS = 192  # of a picture's palette
AUTHOR = "pictures"
ADDED = "h100-0"  # the what-if adds one like it


class Shot(NamedTuple):
    """One picture."""

    name: str
    path: Callable[[Store], str]  # of the page, with its query
    act: Callable[["Page"], None]  # what is done there before
    size: tuple[int, int] = SIZE
    scheme: Literal["light", "dark"] = "light"


def at(path: str) -> Callable[[Store], str]:
    """A path that does not depend on what is stored."""
    return lambda store: path


def look(page: "Page") -> None:
    """Do nothing but look."""


def await_charts(page: "Page") -> None:
    """Wait until the charts are drawn."""
    page.wait_for_selector(".js-plotly-plot .trace", state="attached")


def hide_story(page: "Page") -> None:
    """Take the line of the story off the foot of the page."""
    hide = page.get_by_role("button", name="Hide", exact=True)
    if hide.count():
        hide.click()


def latest_of_all(store: Store) -> str:
    """The page of the ended workflow that was late by most."""
    rows, _ = finders.ended(store, finders.Workflows(late=True), 1)
    return f"workflows?workflow={rows[0]['id']}" if rows else "workflows"


def newest_placement(store: Store) -> str:
    """The page of a placement."""
    rows = readers.decisions(store, 1)
    return f"decisions?decision={rows[0]['id']}" if rows else "decisions"


def fork_with_more(page: "Page") -> None:
    """Ask what one more instance of each of two kinds would change, and wait for the answer."""
    form = page.locator(".st-key-panel-ask")
    form.get_by_role("radio", name="Fleet", exact=True).click()
    deeds = page.locator(".st-key-whatif_deeds")
    deeds.get_by_role("button", name="add one like", exact=True).click()
    deeds.get_by_role("button", name="fail", exact=True).click()
    page.wait_for_timeout(SETTLE_MS)
    form.get_by_role("button", name="Fork now").click()
    page.wait_for_selector(".st-key-panel-settings")
    page.wait_for_selector(".st-key-panel-forecast .progress.idle", state="attached")
    await_charts(page)


SHOTS = (
    Shot("fleet-dark", at("?window=60"), await_charts, scheme="dark"),
    Shot("fleet-phone", at(""), await_charts, size=PHONE),
    Shot("workflow", latest_of_all, await_charts),
    Shot("debt", at("debt"), look),
    Shot("decision", newest_placement, look),
    Shot("tuning", at("tuning"), await_charts),
    Shot("whatif", at("whatif"), fork_with_more),
    Shot("scenarios", at("scenarios"), look),
)


def take_pictures(names: Sequence[str], seed: int, folder: Path, work: Path, say: Say) -> list[Path]:
    """Write the pictures of these names into `folder`; their files. `work` is an empty folder for the store.

    Raises:
        InputError: playwright or a browser is missing.
        MeasureError: engine or dashboard does not come up.
    """
    with browser() as chromium:
        say("starting a Headway")
        with (
            scratch(work, [f"--seed={seed}", f"--speed={SPEED:g}"]) as running,
            closing(open_store(running.db)) as store,
        ):
            grow_old(running, store, say)
            return [take(chromium, running, store, shot, folder, say) for shot in SHOTS if shot.name in names]


def grow_old(running: Scratch, store: Store, say: Say) -> None:
    """Let the fleet run to OLD_S, and tune once."""
    say(f"waiting for {OLD_S:.0f} s of simulated time")
    wait_until(lambda: sim_s(store) > OLD_S, "simulated time", running.engine)
    commands.submit(store, "tune", {}, AUTHOR)
    wait_until(lambda: runs.recent(store, 1, kind="tune"), "tuning run", running.engine)


def sim_s(store: Store) -> float:
    """Simulated time of the newest snapshot, s."""
    newest = readers.latest_snapshot(store)
    return 0.0 if newest is None else float(newest["payload"]["sim_s"])


def take(chromium: "Browser", running: Scratch, store: Store, shot: Shot, folder: Path, say: Say) -> Path:
    """Open the page, do what is to be done there, write the picture."""
    say(shot.name)
    width, height = shot.size
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=shot.scheme)
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{running.url}/{shot.path(store)}", wait_until="commit")
        page.wait_for_selector('.hw-badge[data-kind="live"]')
        hide_story(page)
        shot.act(page)
        page.mouse.move(0, 0)
        page.wait_for_timeout(SETTLE_MS)
        return written(page.screenshot(), folder / f"{shot.name}.png")
    finally:
        context.close()


def written(picture: bytes, path: Path) -> Path:
    """The picture in a file; with a palette where Pillow is there, for a page has few colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        from PIL import Image
    except ImportError:
        path.write_bytes(picture)
        return path
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    return path
