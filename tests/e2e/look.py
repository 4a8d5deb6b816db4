"""Pictures of every page in both themes and two sizes: `python -m tests.e2e.look URL FOLDER [--axe axe.min.js]`.

The dashboard at URL is shown as it is; look again, with another `--name`, once its engine was stopped or over an empty
store. With `--axe` what axe-core finds of serious and critical impact is printed, a line an element.
"""

import argparse
from pathlib import Path

from playwright.sync_api import Page

from tests.support.looking import PAGES, SIZES, THEMES, browser, findings, linked, visit, window

#: What is opened on a page: the kind of link that leads there.
OPENED = {"workflows": "workflow", "decisions": "decision"}


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="where the dashboard is, such as http://localhost:8501")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--name", default="live", help="first part of the pictures' names")
    parser.add_argument("--pages", default=",".join(PAGES), help="pages to open, with commas between")
    parser.add_argument("--themes", default=",".join(THEMES), help="light, dark or both")
    parser.add_argument("--sizes", default=",".join(SIZES), help="desk, phone or both")
    parser.add_argument("--tall", type=int, default=0, help="height in px instead of a screen's, to see all of a page")
    parser.add_argument("--axe", type=Path, help="axe.min.js of the npm package axe-core")
    return parser.parse_args()


def keep(page: Page, asked: argparse.Namespace, name: str) -> None:
    """The picture of what is in view, and axe-core's findings."""
    page.screenshot(path=asked.folder / f"{asked.name}-{name}.png")
    if asked.axe:
        for found in findings(page, asked.axe):
            print(name, *found, sep="\t", flush=True)


def look(page: Page, asked: argparse.Namespace, view: str) -> None:
    """All pages, and what is opened on some."""
    for name in asked.pages.split(","):
        visit(page, f"{asked.url}/{'' if name == 'fleet' else name}")
        keep(page, asked, f"{name}-{view}")
        if (kind := OPENED.get(name)) and (address := linked(page, kind)):
            visit(page, f"{asked.url}/{address}")
            keep(page, asked, f"{name}-opened-{view}")


def main() -> None:
    """Open a window for each theme and size."""
    asked = arguments()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with browser() as opened:
        for size in asked.sizes.split(","):
            for theme in asked.themes.split(","):
                width, height = SIZES[size]
                with window(opened, theme, (width, asked.tall or height)) as page:
                    look(page, asked, f"{size}-{theme}")


if __name__ == "__main__":
    main()
