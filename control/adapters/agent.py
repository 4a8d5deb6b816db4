"""The small HTTP server of `headway agent`: power of a GPU host's GPUs out, power limits in."""

import asyncio
import hmac
import ipaddress
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from control.adapters.faults import NoSuchGpuError, NotPermittedError, PowerBoundsError, PowerError
from control.adapters.power import GpuHost
from control.adapters.reading import GpuReading
from control.errors import SettingError

BYTES_PER_MIB = 2**20
#: Metric -> (help, field, factor). The energy counter stands apart.
GAUGES = {
    "headway_gpu_power_watts": ("Power drawn now.", "power_w", 1.0),
    "headway_gpu_power_limit_watts": ("Power limit in force.", "power_limit_w", 1.0),
    "headway_gpu_power_limit_min_watts": ("Lowest power limit that can be set.", "power_limit_min_w", 1.0),
    "headway_gpu_power_limit_max_watts": ("Highest power limit that can be set.", "power_limit_max_w", 1.0),
    "headway_gpu_utilization_ratio": ("Share of time with a kernel running, 0-1.", "utilization", 1.0),
    "headway_gpu_memory_used_bytes": ("Memory in use.", "memory_used_mib", BYTES_PER_MIB),
    "headway_gpu_memory_total_bytes": ("Memory there is.", "memory_total_mib", BYTES_PER_MIB),
    "headway_gpu_temperature_celsius": ("Temperature of the chip.", "temperature_c", 1.0),
}
ENERGY = "headway_gpu_energy_joules"
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
LABELS = ("gpu", "uuid", "name")
HOST = web.AppKey("host", GpuHost)
TOKEN = web.AppKey("token", str)
CAPS = web.AppKey("caps", bool)


def check_safe(host: str, token: str | None, caps: bool) -> None:
    """Refuse to let anybody on the network limit the power.

    Raises:
        SettingError: limits are allowed, there is no token, and the address is not this machine's own.
    """
    if caps and not token and not is_loopback(host):
        raise SettingError(
            f"--token is missing for --host {host}: expected a token (or HEADWAY_AGENT_TOKEN), "
            "--read-only or --host 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_app(host: GpuHost, token: str | None = None, caps: bool = True) -> web.Application:
    """The server: GET /metrics, /gpus, /health; POST /gpus/{index}/power_limit.

    Args:
        host: the GPUs.
        token: bearer token that limits need; without one they need none (only for an address of this machine).
        caps: whether limits may be set at all.
    """
    app = web.Application(client_max_size=2**16)
    app[HOST], app[TOKEN], app[CAPS] = host, token or "", caps
    app.add_routes(
        [
            web.get("/metrics", get_metrics),
            web.get("/gpus", get_gpus),
            web.get("/health", get_health),
            web.post("/gpus/{index}/power_limit", post_limit),
        ]
    )
    return app


async def get_metrics(request: web.Request) -> web.Response:
    """The GPUs as a Prometheus text."""
    gpus = await asyncio.to_thread(request.app[HOST].read)
    registry = CollectorRegistry()
    registry.register(GpuFamilies(gpus))
    return web.Response(body=generate_latest(registry), headers={"Content-Type": PROMETHEUS_TEXT})


class GpuFamilies(Collector):
    """Metric families of one reading; what a GPU does not tell is left out."""

    def __init__(self, gpus: list[GpuReading]) -> None:
        self.gpus = gpus

    def collect(self) -> Iterator[Metric]:
        """All families."""
        count = GaugeMetricFamily("headway_gpu_count", "GPUs of this host.")
        count.add_metric([], len(self.gpus))
        yield count
        energy = CounterMetricFamily(ENERGY, "Energy used since the agent started.", labels=LABELS)
        families = {name: GaugeMetricFamily(name, told[0], labels=LABELS) for name, told in GAUGES.items()}
        for gpu in self.gpus:
            labels = [str(gpu.index), gpu.uuid or "", gpu.name or ""]
            for name, (_, field, factor) in GAUGES.items():
                if (value := getattr(gpu, field)) is not None:
                    families[name].add_metric(labels, value * factor)
            if gpu.energy_j is not None:
                energy.add_metric(labels, gpu.energy_j)
        yield energy
        yield from families.values()


async def get_gpus(request: web.Request) -> web.Response:
    """The GPUs as JSON."""
    gpus = await asyncio.to_thread(request.app[HOST].read)
    return answer({"gpus": [asdict(gpu) for gpu in gpus], "reason": request.app[HOST].reason})


async def get_health(request: web.Request) -> web.Response:
    """That the agent runs, how many GPUs it sees, and whether it takes limits."""
    gpus = await asyncio.to_thread(request.app[HOST].read)
    return answer({"status": "ok", "gpus": len(gpus), "caps": request.app[CAPS], "reason": request.app[HOST].reason})


async def post_limit(request: web.Request) -> web.Response:
    """Set a power limit: {"watts": W}; answers with the GPU as it is then."""
    denied = denial(request)
    if denied is not None:
        return denied
    # A page in a browser can send JSON to this machine only under another type.
    if request.content_type != "application/json":
        return refuse(415, "expected Content-Type: application/json")
    watts = watts_of(await request.read())
    if watts is None:
        return refuse(422, 'expected a body like {"watts": 300}')
    index = request.match_info["index"]
    host = request.app[HOST]
    try:
        await asyncio.to_thread(host.set_limit, int(index) if index.isdecimal() else -1, watts)
    except PowerError as error:
        return refused(error)
    gpus = await asyncio.to_thread(host.read)
    return answer(asdict(gpus[int(index)]))


def denial(request: web.Request) -> web.Response | None:
    """Why the caller may not set limits; None where it may."""
    if not request.app[CAPS]:
        return refuse(403, "this agent is read only")
    token = request.app[TOKEN]
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if not token:
        return None
    if scheme.lower() != "bearer" or not given.strip():
        return refuse(401, "expected Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
    if not hmac.compare_digest(given.strip().encode(), token.encode()):
        return refuse(403, "the token is wrong")
    return None


def watts_of(body: bytes) -> float | None:
    """The limit in a request; None where the body holds none."""
    try:
        watts = orjson.loads(body).get("watts")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    if isinstance(watts, bool) or not isinstance(watts, int | float):
        return None
    return float(watts) if math.isfinite(watts) else None


def refused(error: PowerError) -> web.Response:
    """The answer to a limit that was not set."""
    if isinstance(error, NoSuchGpuError):
        return refuse(404, str(error), gpus=error.known)
    if isinstance(error, PowerBoundsError):
        return refuse(422, str(error), low_w=error.low_w, high_w=error.high_w)
    return refuse(501 if isinstance(error, NotPermittedError) else 502, str(error))


def answer(value: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON answer."""
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json", headers=headers)


def refuse(status: int, error: str, headers: dict[str, str] | None = None, **more: Any) -> web.Response:
    """An error as JSON."""
    return answer({"error": error, **more}, status, headers)
