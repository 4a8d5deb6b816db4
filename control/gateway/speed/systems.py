"""The systems that are compared, each in processes of its own, in front of the same two servers."""

import os
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from control.errors import SettingError
from control.gateway.speed.client import PATH, bodies
from control.gateway.speed.processes import LOOK_S, PATIENCE_S, MeasureError, Process

SERVERS = 2
CHUNK_MS = 5.0
DIRECT, BARE, GATEWAY = "direct", "pass-through", "headway"
ROUTER, ROUTER_CACHE = "vllm-router", "vllm-router, cache-aware"
ROOT = Path(__file__).resolve().parents[3]
FLEET = """[[instance]]
name = "s{k}"
gpu = "H100"
model = "Llama-3.1-8B"
url = "{url}"

"""


@dataclass
class System:
    """One way to the servers; `process` is None where there is nothing between."""

    name: str
    urls: Sequence[str]
    process: Process | None = None

    def cpu_s(self) -> float:
        """CPU time it has used so far, s."""
        return 0.0 if self.process is None else self.process.cpu_s()


@contextmanager
def started(folder: Path, router: str | None, say: Callable[[str], None]) -> Iterator[list[System]]:
    """All systems, ready to serve; `router` is the command of vllm-router, None: without.

    Raises:
        SettingError: `router` is no program.
        MeasureError: one of them does not come up.
    """
    if router is not None and shutil.which(router) is None:
        raise SettingError(f"--router = {router!r}: expected the vllm-router command of its own virtual environment")
    with ExitStack() as stack:
        begin = Starter(stack, folder)
        say("starting servers and systems")
        urls = [begin.server(k) for k in range(SERVERS)]
        systems = [System(DIRECT, urls), begin.bare(urls), begin.gateway(urls)]
        if router is not None:
            systems += [begin.router(router, urls, ROUTER, "round_robin")]
            systems += [begin.router(router, urls, ROUTER_CACHE, "cache_aware")]
        for system in systems:
            for _ in range(SERVERS):
                await_answer(system)
        yield systems


class Starter:
    """Starts processes that end with a stack."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.environment = {**os.environ, "PYTHONPATH": path}

    def process(self, name: str, *command: str) -> Process:
        """A process under way."""
        return self.stack.enter_context(Process(name, command, self.folder, self.environment))

    def server(self, k: int) -> str:
        """Address of a simulated server: the first token at once, the others CHUNK_MS apart."""
        pace = ("--port=0", "--name=mock", "--ttft-ms=0", f"--tpot-ms={CHUNK_MS}", "--seats=1024")
        one = self.process(f"server {k}", sys.executable, "-m", "control.cli", "mock-vllm", *pace)
        return one.said(r"listening on (http://[^,\s]+)")

    def bare(self, urls: Sequence[str]) -> System:
        """The bare pass-through."""
        process = self.process(BARE, sys.executable, "-m", "control.gateway.speed.passthrough", *urls)
        return System(BARE, [process.said(r"listening on (http://\S+)")], process)

    def gateway(self, urls: Sequence[str]) -> System:
        """An engine with its gateway and a store of its own."""
        fleet = self.folder / "fleet.toml"
        fleet.write_text('name = "bench"\n\n' + "".join(FLEET.format(k=k, url=url) for k, url in enumerate(urls)))
        where = (f"--fleet={fleet}", f"--db={self.folder / 'bench.db'}", "--gateway-port=0", "--policy=hexgen")
        process = self.process(GATEWAY, sys.executable, "-m", "control.cli", "engine", *where)
        url = process.said(r"gateway on (http://\S+)")
        await_all_up(url, process)
        return System(GATEWAY, [url], process)

    def router(self, command: str, urls: Sequence[str], name: str, policy: str) -> System:
        """vllm-router under one of its policies."""
        port, metrics = free_port(), free_port()
        where = (f"--port={port}", f"--prometheus-port={metrics}", f"--policy={policy}")
        process = self.process(name, command, *where, "--log-level=warning", "--worker-urls", *urls)
        return System(name, [f"http://127.0.0.1:{port}"], process)


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def await_all_up(url: str, process: Process) -> None:
    """Wait until a gateway has found all its servers ready."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        process.check()
        try:
            with urllib.request.urlopen(url + "/health", timeout=2.0) as response:
                if orjson.loads(response.read())["up"] == SERVERS:
                    return
        except OSError:
            pass
        time.sleep(LOOK_S)
    raise MeasureError(f"{process.name} did not find its servers ready within {PATIENCE_S:.0f} s")


def await_answer(system: System) -> None:
    """Wait until a system serves a completion."""
    until_s, reason = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < until_s:
        if system.process is not None:
            system.process.check()
        asked = urllib.request.Request(system.urls[0] + PATH, bodies(False, 1)[0], {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=5.0) as response:
                response.read()
                return
        except OSError as error:
            reason = str(error)
        time.sleep(LOOK_S)
    raise MeasureError(f"{system.name} did not serve within {PATIENCE_S:.0f} s: {reason}")
