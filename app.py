"""The dashboard's process: `streamlit run app.py`, or started by `headway up`.

HEADWAY_DB names the store. With HEADWAY_ENGINE=external somebody else runs the engine; otherwise one is
started here as a child process, unless a live one already drives the store, and ends with the dashboard.
With HEADWAY_PARENT, the id of the process that started it, the dashboard ends when that process is gone.
"""

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from control.errors import StoreError
from pages._ui import source
from pages._ui.early import EarlyLinks
from pages._ui.routes import routes
from storage import lease

#: A lease whose heartbeat is older than this (s) belongs to an engine that is gone.
LEASE_TTL_S = 5.0
log = logging.getLogger(__name__)
HERE = Path(__file__).resolve().parent


def start_engine() -> subprocess.Popen[bytes] | None:
    """An engine as a child process, None where it is external, alive already or the store is unreadable."""
    if os.environ.get("HEADWAY_ENGINE") == "external":
        return None
    try:
        holder = lease.holder(source.store())
    except StoreError as error:
        print(f"headway: {error}", file=sys.stderr)
        return None
    if holder is not None and holder["age_s"] < LEASE_TTL_S:
        return None
    command = [sys.executable, "-m", "control.cli", "engine", f"--parent={os.getpid()}"]
    return subprocess.Popen(command, cwd=HERE)


def stop_engine(engine: subprocess.Popen[bytes], grace_s: float = 5.0) -> None:
    """Ask the child to end, and end it after `grace_s` s."""
    engine.terminate()
    try:
        engine.wait(grace_s)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


async def end_with(parent: int) -> None:
    """Ask this process to end once it is no longer a child of `parent`."""
    while os.getppid() == parent:
        await asyncio.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Start or find the engine; freeze the imported heap so that no collection walks it again."""
    engine = start_engine()
    parent = os.environ.get("HEADWAY_PARENT", "")
    watch = asyncio.create_task(end_with(int(parent))) if parent.isdigit() else None
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if watch is not None:
            watch.cancel()
        if engine is not None:
            stop_engine(engine)
        source.close()


def note_error(error: Exception) -> None:
    """Leave what went wrong in a page in the log, too; the page shows it as it would."""
    log.error("a page failed", exc_info=error)


app = st.App(
    HERE / "pages" / "_main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=[Middleware(EarlyLinks)],
    on_script_error=note_error,
)
