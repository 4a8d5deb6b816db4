"""Scraping over real sockets: where the page lies, what the version is, and what is said when nothing comes."""

import asyncio
import socket
from pathlib import Path

import pytest

from control.adapters.faults import MetricsError
from control.adapters.reading import Reading
from control.adapters.recognise import read_text
from control.adapters.scrape import Scraper, metrics_url, scrape, scrape_url, without_histograms
from tests.adapters.pages import Pages
from tests.support.running import free_port

GAUGES = ("engine", "running", "waiting", "kv_used_fraction", "kv_used_tokens", "preemptions", "generation_tokens")
RUNNING = "vllm:num_requests_running 3\n"


@pytest.mark.parametrize(
    ("given", "page"),
    [
        ("http://h:8000", "http://h:8000/metrics"),
        ("http://h:8000/", "http://h:8000/metrics"),
        ("http://h:8000/v1", "http://h:8000/metrics"),
        ("http://h:8000/metrics/", "http://h:8000/metrics"),
        ("https://h/proxy/a", "https://h/proxy/a/metrics"),
        ("http://h/metrics?x=1#top", "http://h/metrics?x=1"),
    ],
)
def test_page_of_a_server(given: str, page: str) -> None:
    assert metrics_url(given) == page


@pytest.mark.parametrize("odd", ["ftp://h/metrics", "http://", "http:///metrics", "h:8000"])
def test_other_urls_are_refused(odd: str) -> None:
    with pytest.raises(MetricsError, match="expected a URL like"):
        metrics_url(odd)


def test_server_with_its_version(pages: Pages) -> None:
    pages["/metrics"], pages["/version"] = (200, RUNNING), (200, '{"version": "0.19.0"}')
    reading = scrape(pages.url)
    assert (reading.engine, reading.version, reading.running) == ("vllm", "0.19.0", 3)
    assert scrape(pages.url + "/metrics").version == "0.19.0"


def test_version_of_sglang_is_looked_for_in_two_places(pages: Pages) -> None:
    pages["/metrics"] = 200, "sglang:num_running_reqs 2\n"
    pages["/get_server_info"] = 200, '{"version": "0.4.6"}'
    assert scrape(pages.url).version == "0.4.6"


@pytest.mark.parametrize("answer", [(404, ""), (200, "0.19.0"), (200, "[]"), (200, '{"version": 3}')])
def test_server_that_hides_its_version_is_read_all_the_same(pages: Pages, answer: tuple[int, str]) -> None:
    pages["/metrics"], pages["/version"] = (200, RUNNING), answer
    assert (scrape(pages.url).version, scrape(pages.url).running) == (None, 3)


def test_scraper_asks_for_the_version_once_and_keeps_the_scale_of_percentages(pages: Pages) -> None:
    async def use() -> list[Reading]:
        readings = []
        async with Scraper(pages.url) as scraper:
            for usage in (0.5, 40, 0.8):
                pages["/metrics"] = 200, f"vllm:kv_cache_usage_perc {usage}\n"
                readings.append(await scraper.read())
        return readings

    pages["/version"] = 200, '{"version": "0.33.0"}'
    readings = asyncio.run(use())
    assert [reading.kv_used_fraction for reading in readings] == pytest.approx([0.5, 0.4, 0.008])
    assert [reading.version for reading in readings] == ["0.33.0"] * 3
    assert pages.asked.count("/version") == 1


def test_scraper_of_a_server_that_starts_finds_its_version_later(pages: Pages) -> None:
    async def use() -> list[Reading]:
        async with Scraper(pages.url) as scraper:
            pages["/metrics"] = 200, "python_info 1\n"
            first = await scraper.read()
            pages["/metrics"], pages["/version"] = (200, RUNNING), (200, '{"version": "0.12.0"}')
            return [first, await scraper.read()]

    first, second = asyncio.run(use())
    assert (first.is_empty(), first.version) == (True, None)
    assert (second.running, second.version) == (3, "0.12.0")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ((404, "no"), "HTTP 404 Not Found"),
        ((503, "no"), "HTTP 503 Service Unavailable"),
        ((200, "<html></html>"), "line 1: '<html></html>': expected a metrics text"),
        ((200, ""), "the text is empty"),
    ],
)
def test_answers_that_are_no_metrics(pages: Pages, page: tuple[int, str], words: str) -> None:
    pages["/metrics"] = page
    with pytest.raises(MetricsError) as error:
        scrape(pages.url)
    assert str(error.value).startswith(f"{pages.url}/metrics: ")
    assert words in str(error.value)


def test_server_that_is_not_there() -> None:
    with pytest.raises(MetricsError, match="cannot be reached: connect"):
        scrape(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(MetricsError, match="cannot be reached"):
        scrape("http://no-such-host.invalid:8000")


def test_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(MetricsError, match=r"no answer within 0\.2 s"):
            asyncio.run(scrape_url(url, timeout_s=0.2))


def test_server_that_hangs_up() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    async def use() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            await scrape_url(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    with pytest.raises(MetricsError, match="cannot be reached: Server disconnected"):
        asyncio.run(use())


@pytest.mark.parametrize("name", ["vllm_0.12.0_v1.prom", "vllm_0.8.5_v1.prom", "sglang_docs_llama31-8b_loaded.prom"])
def test_a_text_without_its_histograms_says_the_same_of_all_else(name: str, recorded: Path) -> None:
    text = (recorded / "metrics" / name).read_text()
    whole, lean = (read_text(part, name, 0.0).to_dict() for part in (text, without_histograms(text)))
    assert {key: lean[key] for key in GAUGES} == {key: whole[key] for key in GAUGES}
    assert lean["ttft_mean_s"] is None
