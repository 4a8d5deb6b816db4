"""The browser: found, started, closed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from control.errors import InputError
from control.gateway.speed.processes import MeasureError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEBIAN = Path("/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)


def chromium_path() -> str:
    """The program: HEADWAY_CHROMIUM, else Debian's chromium, else one on PATH.

    Raises:
        InputError: there is none.
    """
    named = os.environ.get("HEADWAY_CHROMIUM")
    if named:
        if shutil.which(named) is None:
            raise InputError(f"HEADWAY_CHROMIUM = {named!r}: expected a program, e.g. {DEBIAN}")
        return named
    found = [str(DEBIAN)] if DEBIAN.exists() else [path for path in map(shutil.which, NAMES) if path]
    if not found:
        raise InputError(
            f"no browser: install chromium, or name one with HEADWAY_CHROMIUM (looked for {DEBIAN} and PATH)"
        )
    return found[0]


@contextmanager
def browser() -> Iterator["Browser"]:
    """A browser without a window, for the length of a block.

    Raises:
        InputError: playwright or a browser is missing, or the program does not start.
        MeasureError: what the block waits for in a page does not come.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise InputError("playwright is not installed: pip install playwright (make setup leaves it out)") from error
    path = chromium_path()
    with sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        except Error as error:
            raise InputError(f"{path} does not start as a browser: {error.message.splitlines()[0]}") from error
        try:
            yield started
        except Error as error:
            raise MeasureError(f"the browser did not get there: {' '.join(error.message.split())}") from error
        finally:
            started.close()
