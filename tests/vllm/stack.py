"""Headway as one runs it, a process of its own, in front of real servers; and the commands that go with it."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from openai import OpenAI

from storage import readers
from storage.open import open_store
from tests.support.running import Running, free_port, headway, object_of, until
from tests.support.web import fetch
from tests.vllm.servers import BLOCK_TOKENS, CONTEXT_TOKENS, MODEL, SEATS, Server, metric_in

START_S = 400.0  # the first start on a changed source compiles
KV_TOKENS = 2048 * BLOCK_TOKENS


class Stack:
    """`headway engine` with its gateway."""

    def __init__(self, folder: Path, fleet: Path, policy: str, alpha: float) -> None:
        self.store = folder / f"{policy}-{free_port()}.db"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        settings = ("--fleet", fleet, "--policy", policy, "--alpha", alpha, "--gateway-port", self.port)
        self.running = headway(folder, "engine", "--db", self.store, *settings)

    def __str__(self) -> str:
        return f"Headway on port {self.port}"

    def wait_ready(self, servers: int) -> None:
        """Return once that many servers are up; AssertionError with its log where they are not."""
        try:
            until(lambda: not self.running.is_alive() or self.up() >= servers, f"{servers} servers are up", START_S)
            assert self.running.is_alive(), f"{self} died on its start"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from error

    def up(self) -> int:
        """Servers that are up."""
        status, body = fetch(f"{self.url}/health")
        return int(object_of(body.decode())["up"]) if status in (200, 503) else 0

    def client(self) -> OpenAI:
        """The plain client of OpenAI, which asks once and waits a minute."""
        return OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=60.0)

    def metric(self, name: str, **labels: str) -> float:
        """A metric of the gateway, summed over its other labels; 0 where it is not there."""
        return metric_in(fetch(f"{self.url}/metrics", 30.0)[1].decode(), name, **labels) or 0.0

    def snapshot(self) -> dict[str, Any]:
        """What the engine recorded last."""
        with closing(open_store(str(self.store))) as store:
            found = readers.latest_snapshot(store)
        return found["payload"] if found else {}

    def instances(self) -> dict[str, dict[str, Any]]:
        """The snapshot's instances by name."""
        return {row["name"]: row for row in self.snapshot().get("instances", ())}

    def events(self, kind: str) -> list[str]:
        """What the audit says of one kind of event, oldest first."""
        with closing(open_store(str(self.store))) as store:
            found = readers.events(store, 0.0, 1000)
        return [row["text"] for row in sorted(found, key=lambda row: row["at"]) if row["kind"] == kind]

    def is_idle(self) -> bool:
        """Whether nothing is charged any more, by its own metrics and its record."""
        rows = self.snapshot().get("instances", ())
        return bool(rows) and all(row["queued"] == row["running"] == 0 for row in rows)

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join([f"--- the log of {self} ends:", *self.running.stderr.splitlines()[-40:]])

    def end(self) -> None:
        """Stop it as a service manager would."""
        if self.running.is_alive():
            self.running.signal(signal.SIGTERM)
            self.running.wait(30.0)
        self.running.end()


@contextmanager
def headway_over(
    folder: Path, servers: Sequence[Server], policy: str = "hexgen", alpha: float = 0.3, **fleet: Any
) -> Iterator[Stack]:
    """Headway in front of these servers, all of them ready; see `write_fleet` for the rest."""
    stack = Stack(folder, write_fleet(folder / f"fleet-{free_port()}.toml", servers, **fleet), policy, alpha)
    try:
        stack.wait_ready(len(servers))
        yield stack
    finally:
        stack.end()


def write_fleet(
    path: Path,
    servers: Sequence[Server],
    profiles: dict[str, Path] | None = None,
    windows: dict[str, int] | None = None,
    scales: dict[str, tuple[float, float]] | None = None,
) -> Path:
    """A fleet file of real servers, named by their role or model; `profiles` are calibrated ones by name.

    `scales` are factors of their prefill and their decode, as an earlier engine learned them.
    """
    parts = ['name = "tiny"\n']
    for server in servers:
        name = name_of(server)
        known = 'gpu = "L4"\nmodel = "Llama-3.1-8B"\n' + f"max_model_len = {CONTEXT_TOKENS}\n"
        if profiles is not None:
            known = f'profile = "{profiles[name]}"\n'
        known += f"max_num_seqs = {SEATS}\nkv_tokens = {KV_TOKENS}\nblock_size = {BLOCK_TOKENS}\n"
        role = "" if server.role == "both" else f'role = "{server.role}"\n'
        prefill, decode = (scales or {}).get(name, (1.0, 1.0))
        known += f"prefill_scale = {prefill}\ndecode_scale = {decode}\n"
        window = f"window = {(windows or {}).get(name, SEATS)}\n"
        parts.append(f'[[instance]]\nname = "{name}"\nurl = "{server.url}"\nserved_model = "{MODEL}"\n')
        parts.append(known + role + window)
    path.write_text("".join(parts))
    return path


def name_of(server: Server) -> str:
    """What a server is called in a fleet file."""
    return server.model if server.role == "both" else server.role


def command(folder: Path, *arguments: object, timeout_s: float = 900.0) -> dict[str, Any]:
    """What `headway ARGUMENTS --json` prints. AssertionError with its last lines where it fails."""
    running: Running = headway(folder, *arguments, "--json")
    try:
        code = running.wait(timeout_s)
        assert code == 0, f"headway {arguments[0]} ended with {code}: {running.stderr[-2000:]}"
        return object_of(running.stdout)
    finally:
        running.end()


def calibrate(folder: Path, server: Server, budget_s: float) -> tuple[Path, dict[str, Any]]:
    """The profile of a server measured for that long: its file, and what the command said."""
    path = folder / f"{name_of(server)}.json"
    options = ("--out", path, "--force", "--gpu", f"cpu-{name_of(server)}", "--max-num-seqs", SEATS)
    return path, command(folder, "calibrate", "--url", server.url, *options, "--budget-s", budget_s)
