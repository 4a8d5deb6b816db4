"""An engine and a dashboard of their own, on a store that ends with them."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from control.cli.processes import LIVE_STATES, answer, store_environment
from control.config import within
from control.errors import SettingError
from control.gateway.speed.processes import MeasureError, Process
from control.gateway.speed.systems import free_port

PATIENCE_S = 600.0  # the engine may have to compile first
LOOK_S = 0.1
#: GPUs of demo-mixed; a fleet of any multiple of their sum has them in these proportions.
MIX = {"H100": 2, "A100": 2, "L40S": 2, "RTX4090": 1, "L4": 1}


class Scratch(NamedTuple):
    """What runs."""

    url: str
    db: str
    engine: Process
    dashboard: Process


@contextmanager
def scratch(folder: Path, options: Sequence[str]) -> Iterator[Scratch]:
    """`headway engine OPTIONS` and `headway dashboard`, live, on a store in `folder`.

    Raises:
        MeasureError: one of them does not come up.
    """
    db, port = str(folder / "scratch.db"), free_port()
    environment = {**os.environ, **store_environment(db)}
    command = (sys.executable, "-m", "control.cli")
    with ExitStack() as stack:
        engine = stack.enter_context(Process("engine", [*command, "engine", *options], folder, environment))
        shown = [*command, "dashboard", "--headless", f"--port={port}"]
        dashboard = stack.enter_context(Process("dashboard", shown, folder, environment))
        url = dashboard.said(r"live at (http://\S+)")
        wait_until(lambda: (answer(url) or {}).get("state") in LIVE_STATES, "engine to run", engine, dashboard)
        yield Scratch(url, db, engine, dashboard)


def wait_until(is_so: Callable[[], Any], what: str, *processes: Process) -> None:
    """Wait for something while the processes live.

    Raises:
        MeasureError: one of them ended, or it did not come within PATIENCE_S.
    """
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        if is_so():
            return
        for process in processes:
            process.check()
        time.sleep(LOOK_S)
    raise MeasureError(f"waited {PATIENCE_S:.0f} s in vain for the {what}")


def wide_fleet(instances: int, folder: Path) -> Path:
    """A fleet file of `instances` simulated GPUs mixed as in demo-mixed.

    Raises:
        SettingError: not a multiple of 8 from 8 to 1024.
    """
    within("--instances", instances, 8, 1024)
    share, rest = divmod(instances, sum(MIX.values()))
    if rest:
        raise SettingError(f"--instances = {instances}: expected a multiple of {sum(MIX.values())}")
    tables = [f'[[instance]]\ngpu = "{gpu}"\nmodel = "Llama-3.1-8B"\ncount = {share * n}\n' for gpu, n in MIX.items()]
    path = folder / "fleet.toml"
    path.write_text(f'name = "demo-mixed x{share}"\n\n' + "\n".join(tables), encoding="utf-8")
    return path
