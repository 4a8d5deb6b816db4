"""Real vLLM servers, each on one core, that never outlive the test that started them."""

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import Request, urlopen

from openai import OpenAI, OpenAIError

from tests.support.running import Running, command_line, descendants, free_port, living, until
from tests.support.web import fetch
from tests.vllm.setup_env import python_of, venv_folder

#: What the servers call the model they serve, whichever it is: a request may go to any of them.
MODEL = "m"
BLOCK_TOKENS = 32
CONTEXT_TOKENS = 4096
SEATS = 16
START_S = 600.0
TAIL_LINES = 40

#: One thread and no compiler: else a server spins on every core. Tool calls must follow their schema, without the
#: freedom of blanks, in which a model with random weights loses itself. Nothing is fetched, nothing reported. In its
#: mode for developers a server takes the order to empty its prefix cache.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_ENFORCE_STRICT_TOOL_CALLING": "0",
    "OMP_NUM_THREADS": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "PYTHONPATH": "",
    "VLLM_SERVER_DEV_MODE": "1",
}
#: Without a size for its cache in bytes vLLM asks for nearly all memory there is. Half precision takes four times as
#: long on processors that know no AVX-512.
FLAGS = f"""
    --host 127.0.0.1 --served-model-name {MODEL} --max-model-len {CONTEXT_TOKENS} --max-num-seqs {SEATS}
    --block-size {BLOCK_TOKENS} --num-gpu-blocks-override 2048 --kv-cache-memory-bytes 1G --enforce-eager
    --dtype float32
    --scheduling-policy priority --enable-prefix-caching --enable-prompt-tokens-details
    --enable-server-load-tracking --enable-request-id-headers --enable-per-request-metrics
    --enable-auto-tool-choice --tool-call-parser hermes
    --structured-outputs-config {{"backend":"xgrammar","disable_any_whitespace":true}}
""".split()
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}


def core(number: int) -> int:
    """The core of that number among those we may use; on a smaller machine some share one."""
    ours = sorted(os.sched_getaffinity(0))
    return ours[number % len(ours)]


class Server:
    """One server, to be started with `serving`.

    `model` is small or med; `role` both, prefill or decode (the last two hand KV over by NIXL); `flags` are more
    arguments of `vllm serve`, of which the last of a name counts.
    """

    def __init__(self, model: str = "small", role: str = "both", on: int = 0, port: int = 0, *flags: object) -> None:
        self.model, self.role, self.flags = model, role, [str(flag) for flag in flags]
        self.core, self.port = core(on), port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.running: Running | None = None
        self.scratch = Path()

    def __str__(self) -> str:
        return f"vLLM {self.model} ({self.role}) on core {self.core}, port {self.port}"

    def command(self) -> list[str]:
        """The command that serves, as one would type it."""
        venv = venv_folder()
        serve = [str(python_of(venv)), str(venv / "bin" / "vllm"), "serve", str(venv / "models" / self.model)]
        handover = [] if self.role == "both" else ["--kv-transfer-config", kv_config(ROLES[self.role])]
        pinned = ["taskset", "-c", str(self.core), *serve]
        return [*pinned, *FLAGS, "--port", str(self.port), *handover, *self.flags]

    def environment(self) -> dict[str, str]:
        """Its environment: what it writes beside logs goes to the venv's cache and to a folder that is removed."""
        mine = {**ENVIRONMENT, "VLLM_CACHE_ROOT": str(venv_folder() / "cache"), "TMPDIR": str(self.scratch)}
        if self.role == "both":
            return mine
        side = {"VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1", "VLLM_NIXL_SIDE_CHANNEL_PORT": str(free_port())}
        return {**mine, **side, "UCX_TLS": "tcp,self,sm", "UCX_NET_DEVICES": "lo"}

    def start(self, folder: Path) -> None:
        """Begin to start; its logs go to `folder`."""
        self.scratch = Path(tempfile.mkdtemp(prefix="vllm-"))  # short: sockets in it have names of 107 bytes at most
        self.running = Running(folder, self.command(), **self.environment())

    def wait_ready(self) -> None:
        """Return once it generates; AssertionError with the end of its log where it does not, or has died."""
        try:
            until(lambda: not self.is_alive() or self.generates(), f"{self} generates", START_S)
            assert self.is_alive(), f"{self} died on its start"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from error

    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.running is not None and self.running.is_alive()

    def generates(self) -> bool:
        """Whether it answers one token."""
        with suppress(OpenAIError), self.client() as client:
            client.completions.create(model=MODEL, prompt="ready?", max_tokens=1)
            return True
        return False

    def client(self) -> OpenAI:
        """The plain client of OpenAI, which asks once and waits a minute."""
        return OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=60.0)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a GET; status 0 where nobody answers."""
        status, body = fetch(f"{self.url}{path}", 30.0)
        return status, body.decode()

    def metric(self, name: str, **labels: str) -> float | None:
        """A metric's value, summed over its other labels; None where it is not there."""
        return metric_in(self.get("/metrics")[1], name, **labels)

    def forget(self) -> None:
        """Empty its prefix cache: what an earlier run sent must not help a later one."""
        with urlopen(Request(f"{self.url}/reset_prefix_cache", method="POST"), timeout=30.0):
            pass

    def tail(self) -> str:
        """The last lines of its log."""
        if self.running is None:
            return f"{self} was never started"
        lines = [line for text in (self.running.stdout, self.running.stderr) for line in text.splitlines()]
        return "\n".join([f"--- the log of {self} ends:", *lines[-TAIL_LINES:]])

    def kill(self, only: str = "") -> None:
        """End it as a machine that fails would, in the middle of whatever it does; or only processes named so."""
        for pid in self.processes():
            name = command_line(pid)
            if only in name and "resource_tracker" not in name:  # Python's own: it cleans up once the others are gone
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """All living processes of this server, the first one first."""
        pid = self.running.pid if self.running is not None else 0
        return living([pid, *descendants(pid)]) if pid else []

    def end(self) -> None:
        """End all of it; AssertionError where something stays."""
        all_of_it = self.processes()
        self.kill()
        if self.running is not None:
            with suppress(AssertionError):
                until(lambda: not living(all_of_it), "", 5.0)
            self.running.end()
            shutil.rmtree(self.scratch, ignore_errors=True)
        assert not living(all_of_it), f"left of {self}: {[command_line(pid) for pid in living(all_of_it)]}"


def metric_in(text: str, name: str, **labels: str) -> float | None:
    """A metric's value in a Prometheus text, summed over its other labels; None where it is not there."""
    found = re.findall(rf"^{re.escape(name)}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    values = [float(value) for has, value in found if wanted <= set(has.split(","))]
    return sum(values) if values else None


def kv_config(role: str) -> str:
    """The argument that makes a server hand KV over, or take it, from memory to memory of a CPU."""
    return f'{{"kv_connector":"NixlConnector","kv_role":"{role}","kv_buffer_device":"cpu"}}'


@contextmanager
def serving(folder: Path, *servers: Server) -> Iterator[None]:
    """These servers, ready to generate; started side by side, ended with the block. Their logs go to `folder`."""
    with ExitStack() as ends:
        for server in servers:
            ends.callback(server.end)
            server.start(folder)
        for server in servers:
            server.wait_ready()
        yield
