"""The agent on a real socket, and power sources that read and limit through it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from control.adapters.agent import check_safe, make_app
from control.adapters.faults import MetricsError, NoSuchGpuError, NotPermittedError, PowerBoundsError, PowerError
from control.adapters.nvml import LocalGpus
from control.adapters.power import GpuHost, HttpPower, LocalPower, power_source
from control.adapters.simulated_gpus import SimulatedGpus
from control.errors import SettingError
from tests.adapters.fake_nvml import FakeNvml, NoPermissionError, NvmlError, h100
from tests.adapters.pages import Pages
from tests.adapters.test_gpu_text import DCGM
from tests.support.running import free_port

TOKEN = "let-me-in"


class Clock:
    """A clock that moves when told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def served(
    use: Callable[[str], Awaitable[Any]], host: GpuHost | None = None, token: str | None = TOKEN, caps: bool = True
) -> Any:
    """What `use(url)` gives while an agent serves."""

    async def run() -> Any:
        app: web.Application = make_app(host or SimulatedGpus(2), token, caps)
        async with TestServer(app) as server:
            return await use(str(server.make_url("")).rstrip("/"))

    return asyncio.run(run())


def posted(path: str, body: Any, headers: dict[str, str] | None = None, **agent: Any) -> tuple[int, Any]:
    """Status and JSON of a POST; `body` is sent as JSON, or as it is where it is bytes."""

    async def use(url: str) -> tuple[int, Any]:
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with aiohttp.ClientSession() as session, session.post(url + path, headers=headers, **sent) as answer:
            return answer.status, await answer.json(content_type=None)

    status, said = served(use, **agent)
    return status, said


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


def got(path: str, **agent: Any) -> Any:
    """Text, or JSON, of a GET."""

    async def use(url: str) -> Any:
        async with aiohttp.ClientSession() as session, session.get(url + path) as answer:
            assert answer.status == 200
            return await (answer.json() if answer.content_type == "application/json" else answer.text())

    return served(use, **agent)


def test_pages_tell_the_same_gpus() -> None:
    clock = Clock()
    host = SimulatedGpus(2, clock)
    (first, second) = got("/gpus", host=host)["gpus"]
    assert (first["power_w"], first["power_limit_max_w"], second["uuid"]) == (400, 700, "GPU-simulated-1")
    text = got("/metrics", host=host)
    labels = '{gpu="0",name="Simulated H100",uuid="GPU-simulated-0"}'
    assert f"headway_gpu_power_watts{labels} 400.0" in text
    assert f"headway_gpu_power_limit_watts{labels} 700.0" in text
    assert "# TYPE headway_gpu_energy_joules_total counter" in text
    assert got("/health", host=host) == {"status": "ok", "gpus": 2, "caps": True, "reason": None}


def test_figures_a_gpu_does_not_tell_are_left_out() -> None:
    text = got("/metrics", host=LocalGpus(FakeNvml({"PowerUsage": 70_000})))
    assert 'headway_gpu_power_watts{gpu="0",name="",uuid=""} 70.0' in text
    assert "headway_gpu_temperature_celsius{" not in text


def test_agent_reads_back_what_it_serves() -> None:
    clock = Clock()
    host = SimulatedGpus(2, clock)
    before = host.read()
    clock.now_s = 10.0

    async def use(url: str) -> Any:
        source = power_source(url)
        gpus = await source.read()
        await source.close()
        return gpus

    assert served(use, host=host) == host.read()
    assert host.read() != before
    assert host.read()[0].energy_j == pytest.approx(10 * (before[0].power_w + host.read()[0].power_w) / 2)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("headers", "body", "status", "words"),
    [
        ({}, {"watts": 300}, 401, "Bearer"),
        ({"Authorization": "Basic eA=="}, {"watts": 300}, 401, "Bearer"),
        (bearer("wrong"), {"watts": 300}, 403, "wrong"),
        (bearer("naïve"), {"watts": 300}, 403, "wrong"),
        (bearer(TOKEN), {"watts": 100}, 422, "from 200 to 700"),
        (bearer(TOKEN), {"watts": "300"}, 422, "expected a body"),
        (bearer(TOKEN), {"watts": True}, 422, "expected a body"),
        (bearer(TOKEN), {"power": 300}, 422, "expected a body"),
        (bearer(TOKEN), [300], 422, "expected a body"),
        (bearer(TOKEN) | {"Content-Type": "application/json"}, b"{", 422, "expected a body"),
        (bearer(TOKEN) | {"Content-Type": "text/plain"}, b'{"watts": 300}', 415, "application/json"),
    ],
)
def test_limits_that_are_refused(headers: dict[str, str], body: Any, status: int, words: str) -> None:
    host = SimulatedGpus(2)
    code, said = posted("/gpus/0/power_limit", body, headers, host=host)
    assert (code, words in said["error"]) == (status, True), said
    assert host.limits_w == [700, 700]


@pytest.mark.parametrize("index", ["2", "-1", "x"])
def test_limit_of_no_gpu_is_not_found(index: str) -> None:
    code, said = posted(f"/gpus/{index}/power_limit", {"watts": 300}, bearer(TOKEN))
    assert (code, said["gpus"]) == (404, [0, 1])


def test_bounds_come_with_their_refusal() -> None:
    _, said = posted("/gpus/0/power_limit", {"watts": 5000}, bearer(TOKEN))
    assert (said["low_w"], said["high_w"]) == (200, 700)


def test_limit_that_is_set_holds() -> None:
    host = SimulatedGpus(2)
    code, said = posted("/gpus/1/power_limit", {"watts": 250}, bearer(TOKEN), host=host)
    assert (code, said["power_limit_w"], said["index"]) == (200, 250, 1)
    assert host.read()[1].power_w <= 250  # type: ignore[operator]


def test_driver_that_refuses_is_501_with_its_reason() -> None:
    host = LocalGpus(FakeNvml(h100(refuses=NoPermissionError("Insufficient Permissions"))))
    code, said = posted("/gpus/0/power_limit", {"watts": 300}, bearer(TOKEN), host=host)
    assert (code, "Insufficient Permissions" in said["error"]) == (501, True)


def test_read_only_agent_takes_no_limit_even_with_the_token() -> None:
    code, said = posted("/gpus/0/power_limit", {"watts": 300}, bearer(TOKEN), caps=False)
    assert (code, said["error"]) == (403, "this agent is read only")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gpu-host"])
def test_open_address_needs_a_token(host: str) -> None:
    for token in (None, ""):
        with pytest.raises(SettingError, match="--token is missing"):
            check_safe(host, token, caps=True)
    check_safe(host, TOKEN, caps=True)
    check_safe(host, None, caps=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_own_machine_needs_none(host: str) -> None:
    check_safe(host, None, caps=True)


def limited(gpu: int | str, watts: float, source_token: str | None, **agent: Any) -> None:
    """Set a limit through a power source."""

    async def use(url: str) -> None:
        source = power_source(url, source_token)
        try:
            await source.set_limit(gpu, watts)
        finally:
            await source.close()

    served(use, **agent)


def test_source_limits_by_number_and_by_uuid() -> None:
    host = SimulatedGpus(2)
    limited(0, 300, TOKEN, host=host)
    limited("GPU-simulated-1", 400, TOKEN, host=host)
    assert host.limits_w == [300, 400]


@pytest.mark.parametrize(
    ("gpu", "watts", "token", "kind", "words"),
    [
        (0, 100, TOKEN, PowerBoundsError, "from 200 to 700"),
        (7, 300, TOKEN, NoSuchGpuError, "expected one of 0, 1"),
        (0, 300, None, NotPermittedError, "Bearer"),
        (0, 300, "wrong", NotPermittedError, "the token is wrong"),
    ],
)
def test_source_tells_why_a_limit_was_refused(
    gpu: int, watts: float, token: str | None, kind: type[PowerError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        limited(gpu, watts, token)


def test_agent_that_is_gone_or_answers_with_rubbish_is_told_apart_from_a_refusal(pages: Pages) -> None:
    pages["/metrics"] = 200, 'headway_gpu_power_watts{gpu="0",uuid="GPU-a",name="x"} 70\n'

    async def use() -> None:
        source = power_source(pages.url)
        with pytest.raises(PowerError, match="GPU 0: HTTP 501"):
            await source.set_limit(0, 300)
        await source.close()
        gone = HttpPower(f"http://127.0.0.1:{free_port()}")
        with pytest.raises(PowerError, match="cannot be reached: connect"):
            await gone.post(f"{gone.scraper.base}/gpus/0/power_limit", {"watts": 300})
        await gone.close()

    asyncio.run(use())


def test_host_without_gpus_says_so(pages: Pages) -> None:
    pages["/metrics"] = 200, "headway_gpu_count 0.0\n"

    async def use() -> None:
        source = power_source(pages.url)
        assert await source.read() == []
        with pytest.raises(NoSuchGpuError, match="this host has none"):
            await source.set_limit(0, 300)
        await source.close()

    asyncio.run(use())


@pytest.mark.parametrize("path", ["/metrics", ""])
def test_exporter_is_known_by_its_page_and_read_only(pages: Pages, path: str) -> None:
    pages["/metrics"] = 200, DCGM

    async def use() -> None:
        source = HttpPower(pages.url + path)
        assert [gpu.power_w for gpu in await source.read()] == [311.25, 61.5]
        with pytest.raises(NotPermittedError, match="dcgm-exporter is read only"):
            await source.set_limit(0, 300)
        await source.close()

    asyncio.run(use())


def test_other_exporter_of_a_capture(pages: Pages, recorded: Any) -> None:
    (path,) = (recorded / "gpu_captures").glob("*h100*__load.metrics")
    pages["/metrics"] = 200, path.read_text()

    async def use() -> None:
        source = power_source(pages.url + "/metrics")
        assert [gpu.power_w for gpu in await source.read()] == [631.95]
        with pytest.raises(NotPermittedError, match="nvidia_gpu_exporter is read only"):
            await source.set_limit(0, 300)
        await source.close()

    asyncio.run(use())


def test_page_without_gpus_is_no_power_source(pages: Pages) -> None:
    pages["/metrics"] = 200, "vllm:num_requests_running 1\n"

    async def use() -> None:
        source = power_source(pages.url)
        with pytest.raises(MetricsError, match="no GPU metrics"):
            await source.read()
        await source.close()

    asyncio.run(use())


def test_local_source_reads_and_limits_this_machines_gpus() -> None:
    host = SimulatedGpus(2)

    async def use() -> None:
        source = LocalPower(host)
        assert len(await source.read()) == 2
        await source.set_limit("GPU-simulated-1", 300)
        with pytest.raises(NoSuchGpuError):
            await source.set_limit("GPU-x", 300)
        await source.close()

    asyncio.run(use())
    assert host.limits_w == [700, 300]


def test_local_source_without_a_driver_says_why() -> None:
    source = LocalPower(LocalGpus(FakeNvml(fails=NvmlError("Driver Not Loaded"))))
    with pytest.raises(MetricsError, match="nvml: NVML cannot be used: Driver Not Loaded"):
        asyncio.run(source.read())


def test_factory_takes_three_forms_and_names_them() -> None:
    assert isinstance(power_source("nvml"), LocalPower)
    assert isinstance(power_source("http://host:9410", TOKEN), HttpPower)
    for odd in ("dcgm", "host:9400", "ftp://host/metrics", "http://"):
        with pytest.raises(MetricsError, match="expected"):
            power_source(odd)
