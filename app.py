"""The dashboard's process: `streamlit run app.py`, or started by `headway up`.

HEADWAY_DB names the store. With HEADWAY_ENGINE=external somebody else runs the engine; otherwise one is
started here as a child process, unless a live one already drives the store, and ends with the dashboard.
"""

import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st

from control.errors import StoreError
from pages._ui import source
from pages._ui.routes import routes
from storage import lease

#: A lease whose heartbeat is older than this (s) belongs to an engine that is gone.
LEASE_TTL_S = 5.0
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
    return subprocess.Popen([sys.executable, "-m", "control.cli", "engine"], cwd=HERE)


def stop_engine(engine: subprocess.Popen[bytes], grace_s: float = 5.0) -> None:
    """Ask the child to end, and end it after `grace_s` s."""
    engine.terminate()
    try:
        engine.wait(grace_s)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Start or find the engine; freeze the imported heap so that no collection walks it again."""
    engine = start_engine()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if engine is not None:
            stop_engine(engine)
        source.close()


app = st.App(HERE / "pages" / "_main.py", lifespan=lifespan, routes=routes())
