"""GPU power from wherever it can be had: this machine's NVML, an agent, or an exporter (read only)."""

import asyncio
from typing import Any, Protocol

import aiohttp
import orjson

from control.adapters.faults import MetricsError, NoSuchGpuError, NotPermittedError, PowerBoundsError, PowerError
from control.adapters.nvml import LocalGpus
from control.adapters.reading import GpuReading, Reading
from control.adapters.scrape import TIMEOUT_S, Scraper, reason

AGENT = "headway-agent"


class GpuHost(Protocol):
    """GPUs in reach of this process: NVML's, or made-up ones."""

    reason: str | None  # why there are none

    def read(self) -> list[GpuReading]:
        """Every GPU now."""

    def set_limit(self, index: int, watts: float) -> None:
        """Limit the power of a GPU, in W. Raises PowerError."""

    def close(self) -> None:
        """Let go of the GPUs."""


class PowerSource(Protocol):
    """Where power of GPUs is read, and perhaps limited."""

    async def read(self) -> list[GpuReading]:
        """Every GPU now. Raises MetricsError where the source cannot be read."""

    async def set_limit(self, gpu: int | str, watts: float) -> None:
        """Limit the power of a GPU, named by number or UUID, in W. Raises PowerError."""

    async def close(self) -> None:
        """Let go of the source."""


class LocalPower:
    """GPUs of this machine. NVML calls run on another thread: a driver in trouble must not hold up the loop."""

    def __init__(self, host: GpuHost | None = None) -> None:
        self.host = host if host is not None else LocalGpus()

    async def read(self) -> list[GpuReading]:
        """Every GPU now.

        Raises:
            MetricsError: there are none, with the reason.
        """
        gpus = await asyncio.to_thread(self.host.read)
        if not gpus and self.host.reason is not None:
            raise MetricsError("nvml", self.host.reason)
        return gpus

    async def set_limit(self, gpu: int | str, watts: float) -> None:
        """Limit the power of a GPU, in W; errors as in LocalGpus.set_limit."""
        index = index_of(gpu, await asyncio.to_thread(self.host.read))
        await asyncio.to_thread(self.host.set_limit, index, watts)

    async def close(self) -> None:
        """Let go of the driver."""
        self.host.close()


class HttpPower:
    """GPUs behind a URL. What answers there is recognised by its metrics: only our own agent takes limits.

    Args:
        url: of an agent or an exporter, with or without /metrics.
        token: the agent's bearer token.
    """

    def __init__(self, url: str, token: str | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self.scraper = Scraper(url, timeout_s)
        self.token = token
        self.latest: Reading | None = None

    async def read(self) -> list[GpuReading]:
        """Every GPU now.

        Raises:
            MetricsError: the source cannot be read, or its page holds no GPU metrics.
        """
        reading = await self.scraper.read()
        if not reading.gpus and reading.source != AGENT:
            raise MetricsError(self.scraper.url, "no GPU metrics: expected those of headway agent, DCGM or nvidia-smi")
        self.latest = reading
        return list(reading.gpus)

    async def set_limit(self, gpu: int | str, watts: float) -> None:
        """Limit the power of a GPU, in W.

        Raises:
            NoSuchGpuError: there is no such GPU.
            PowerBoundsError: it does not take this limit.
            NotPermittedError: the source is an exporter, the token is missing or wrong, or the driver refuses.
            MetricsError: the source cannot be read.
        """
        if self.latest is None:
            await self.read()
        assert self.latest is not None
        if self.latest.source != AGENT:
            raise NotPermittedError(
                f"{self.scraper.url}: {self.latest.source} is read only: limits need 'headway agent' on that host"
            )
        index = index_of(gpu, list(self.latest.gpus))
        status, said = await self.post(f"{self.scraper.base}/gpus/{index}/power_limit", {"watts": watts})
        if status != 200:
            raise refusal(status, said, index, watts)

    async def post(self, url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to a POST.

        Raises:
            PowerError: there is no answer.
        """
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            async with self.scraper.connection().post(url, json=body, headers=headers) as answer:
                content = await answer.read()
                return answer.status, orjson.loads(content) if content else {}
        except orjson.JSONDecodeError:
            return answer.status, {}
        except TimeoutError:
            raise PowerError(f"{url}: no answer: the limit may or may not be set") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PowerError(f"{url}: cannot be reached: {reason(error)}") from error

    async def close(self) -> None:
        """Close the connection."""
        await self.scraper.close()


def refusal(status: int, said: dict[str, Any], gpu: int, watts: float) -> PowerError:
    """The error an agent's answer means."""
    why = said.get("error") or f"HTTP {status}"
    if status == 422 and "low_w" in said:
        return PowerBoundsError(gpu, watts, said["low_w"], said["high_w"])
    if status == 404:
        return NoSuchGpuError(gpu, said.get("gpus", []))
    if status in (401, 403, 501):
        return NotPermittedError(f"GPU {gpu}: {why}")
    return PowerError(f"GPU {gpu}: {why}")


def index_of(gpu: int | str, gpus: list[GpuReading]) -> int:
    """The number of a GPU named by number or UUID.

    Raises:
        NoSuchGpuError: there is none of that name.
    """
    for there in gpus:
        if there.index is not None and gpu in (there.index, there.uuid, str(there.index)):
            return there.index
    raise NoSuchGpuError(gpu, [there.index for there in gpus if there.index is not None])


def power_source(where: str, token: str | None = None) -> PowerSource:
    """The source of power at `where`: "nvml", an agent's URL ("http://host:9410") or an exporter's page.

    Nothing is read yet; what answers at a URL is recognised by its content with the first reading.

    Raises:
        MetricsError: `where` is none of these.
    """
    if where == "nvml":
        return LocalPower()
    if "://" not in where:
        raise MetricsError(where, "expected nvml, http://host:9410 or http://host:9400/metrics")
    return HttpPower(where, token)
