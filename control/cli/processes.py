"""The processes of `headway up`: started, watched, started again when they die, ended together."""

import errno
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import orjson

from control.errors import SettingError

FIRST_PORT = 8501
GRACE_S = 8.0  # wall s a process gets to end by itself
LIVE_STATES = ("running", "paused", "finished")
SETTLED_S = 2.0  # an engine that cannot use its store has ended by then
QUICK_DEATH_S = 5.0  # a process that lives less long counts as failing
MOST_QUICK_DEATHS = 3
APP = Path(__file__).resolve().parents[2] / "app.py"


@dataclass
class Part:
    """One process: how it is started, and how it has fared."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0  # monotonic s
    quick_deaths: int = 0
    once: Sequence[str] = field(default_factory=tuple)  # options of the first start only

    def start(self) -> None:
        """Start it in a process group of its own, so that ctrl-C reaches only the supervisor."""
        self.process = subprocess.Popen(
            [*self.command, *self.once],
            env={**os.environ, **self.environment},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        self.once = ()
        self.started = time.monotonic()

    def died(self) -> int | None:
        """Its exit code once it has ended."""
        return None if self.process is None else self.process.poll()


def engine_process(db: str | None, options: Sequence[str], fresh: bool) -> Part:
    """The engine, as a child that ends with this process."""
    command = [sys.executable, "-m", "control.cli", "engine", f"--parent={os.getpid()}", *options]
    return Part("engine", command, store_environment(db), once=("--fresh",) if fresh else ())


def dashboard_process(db: str | None, host: str, port: int, engine: str) -> Part:
    """The dashboard, as a child that ends with this process."""
    command = [sys.executable, "-m", "streamlit", "run", str(APP)]
    command += [f"--server.port={port}", f"--server.address={host}", "--server.headless=true"]
    command += ["--logger.hideWelcomeMessage=true", "--logger.level=warning"]
    environment = store_environment(db) | {"HEADWAY_ENGINE": engine, "HEADWAY_PARENT": str(os.getpid())}
    return Part("dashboard", command, environment)


def store_environment(db: str | None) -> dict[str, str]:
    """The environment that names the store, and lets modules be found from any folder."""
    path = os.pathsep.join(filter(None, [str(APP.parent), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path} | ({"HEADWAY_DB": db} if db else {})


def chosen_port(host: str, wanted: int | None) -> int:
    """The wanted port, or the first free one from FIRST_PORT on.

    Raises:
        SettingError: the wanted port is taken or out of bounds.
    """
    if wanted is not None:
        if not 1 <= wanted <= 65535:
            raise SettingError(f"--port = {wanted}: expected a number from 1 to 65535")
        if not is_free(host, wanted):
            raise SettingError(f"--port = {wanted}: the port is taken on {host}; name another one")
        return wanted
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        if is_free(host, port):
            return port
    raise SettingError(f"no port from {FIRST_PORT} to {FIRST_PORT + 99} is free on {host}; name one with --port")


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there.

    Raises:
        SettingError: the host is not an address of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except socket.gaierror as error:
        raise SettingError(f"--host = {host!r}: expected an address of this machine") from error
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise SettingError(f"--host = {host!r}: expected an address of this machine") from error
        return False
    return True


class Supervisor:
    """Starts its parts, prints the URL once the dashboard answers, and ends them all when told to."""

    def __init__(self, parts: Sequence[Part], host: str, port: int, headless: bool) -> None:
        self.parts = parts
        self.url = f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0', '::') else host}:{port}"
        self.headless = headless or not os.environ.get("DISPLAY", os.environ.get("WAYLAND_DISPLAY"))
        self.stopping = False

    def run(self) -> int:
        """Run until ctrl-C or SIGTERM (exit code 0) or until a part keeps dying (its exit code)."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: setattr(self, "stopping", True))
        try:
            for part in self.parts:
                part.start()
            self.announce()
            return self.watch()
        finally:
            self.end_all()

    def announce(self) -> None:
        """Print the URL once the page is worth opening; say so where the engine has to compile first."""
        told = False
        while not self.stopping and not self.is_worth_opening():
            if any(part.died() is not None for part in self.parts):
                return
            if not told and self.state() == "compiling":
                click.echo(f"{self.url} opens soon: the simulator compiles first (once, a minute or two)", err=True)
                told = True
            time.sleep(0.2)
        if not self.stopping:
            click.echo(f"Headway is live at {self.url}  (ctrl-C ends it)")
            if not self.headless:
                webbrowser.open(self.url)

    def state(self) -> str | None:
        """What the engine is doing, as the dashboard's health route says; None while that does not answer."""
        health = answer(self.url)
        return None if health is None else str(health.get("state"))

    def is_worth_opening(self) -> bool:
        """Whether the dashboard answers and, where the engine is ours too, shows what that engine does."""
        if not self.settled():
            return False
        with_engine = any(part.name == "engine" for part in self.parts)
        return self.state() in LIVE_STATES if with_engine else answer(self.url) is not None

    def settled(self) -> bool:
        """Whether every part has lived long enough to have found what it needs."""
        return all(time.monotonic() - part.started > SETTLED_S for part in self.parts)

    def watch(self) -> int:
        """Start parts again when they die; give up on one that dies at once, again and again."""
        while not self.stopping:
            for part in self.parts:
                code = part.died()
                if code is not None and (given_up := self.revive(part, code)) is not None:
                    return given_up
            time.sleep(0.1)
        return 0

    def revive(self, part: Part, code: int) -> int | None:
        """Start a dead part again; the exit code to end with where that is of no use."""
        quick = time.monotonic() - part.started < QUICK_DEATH_S
        part.quick_deaths = part.quick_deaths + 1 if quick else 0
        if code == 2 or (quick and code in (3, 4)) or part.quick_deaths >= MOST_QUICK_DEATHS:
            click.echo(f"the {part.name} ended with exit code {code}; giving up", err=True)
            return code if code > 0 else 1
        click.echo(f"the {part.name} ended unexpectedly (exit code {code}); starting it again", err=True)
        time.sleep(0.2 * part.quick_deaths)
        part.start()
        return None

    def end_all(self) -> None:
        """Ask every part to end, and kill what does not."""
        running = [part.process for part in self.parts if part.process and part.process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + GRACE_S
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def answer(url: str) -> dict[str, Any] | None:
    """What the dashboard's health route says, {} where it has a complaint; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/api/health", timeout=1.0) as response:
            health: dict[str, Any] = orjson.loads(response.read())
            return health
    except (urllib.error.HTTPError, orjson.JSONDecodeError):
        return {}
    except OSError:
        return None
