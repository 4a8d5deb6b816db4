"""Reading a source over HTTP: a server's `/metrics`, once or again and again."""

import asyncio
import time
from dataclasses import replace
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from control.adapters.faults import MetricsError
from control.adapters.reading import Reading
from control.adapters.recognise import MOST_BYTES, decoded, read_file, read_text

TIMEOUT_S = 5.0
#: Where an engine tells its version, first that answers.
VERSION_PATHS = {"vllm": ("/version",), "sglang": ("/server_info", "/get_server_info")}


def metrics_url(url: str) -> str:
    """The URL of the metrics page: `url` itself where it ends in /metrics, else the page of that server.

    Raises:
        MetricsError: `url` is no http or https URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MetricsError(url, "expected a URL like http://host:8000 or http://host:8000/metrics")
    path = parts.path.rstrip("/")
    if not path.endswith("/metrics"):
        path = path.removesuffix("/v1") + "/metrics"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


class Scraper:
    """Reads one server again and again over one connection; remembers its version and the scale of its KV usage."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S, histograms: bool = True) -> None:
        self.histograms = histograms  # False: they are passed over, which takes a fifth of the time
        self.url = metrics_url(url)
        self.base = self.url.partition("?")[0].removesuffix("/metrics")
        self.timeout = aiohttp.ClientTimeout(total=timeout_s)
        self.session: aiohttp.ClientSession | None = None
        self.in_percent = False
        self.version: str | None = None
        self.asked_version = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        if self.session is not None:
            await self.session.close()

    def connection(self) -> aiohttp.ClientSession:
        """The session, opened with the first request."""
        if self.session is None:
            self.session = aiohttp.ClientSession(timeout=self.timeout)
        return self.session

    async def read(self) -> Reading:
        """One reading.

        Raises:
            MetricsError: the server cannot be reached, answers with an error, or with no metrics.
        """
        content = await fetch(self.connection(), self.url, self.timeout.total or TIMEOUT_S)
        # On another thread: the text of a busy server takes 20 ms to parse, too long for a loop that serves streams.
        text = decoded(content, self.url)
        if not self.histograms:
            text = without_histograms(text)
        reading = await asyncio.to_thread(read_text, text, self.url, time.time(), self.in_percent)
        self.in_percent = self.in_percent or reading.kv_in_percent
        if reading.engine is not None and not self.asked_version:
            self.version = await self.find_version(reading.engine)
            self.asked_version = True
        return replace(reading, version=self.version)

    async def find_version(self, engine: str) -> str | None:
        """The version an engine tells; None where it does not."""
        for path in VERSION_PATHS[engine]:
            try:
                content = await fetch(self.connection(), self.base + path, self.timeout.total or TIMEOUT_S)
                version = orjson.loads(content).get("version")
            except (MetricsError, orjson.JSONDecodeError, AttributeError):
                continue
            if isinstance(version, str):
                return version
        return None


async def fetch(session: aiohttp.ClientSession, url: str, timeout_s: float) -> bytes:
    """The body of an answer.

    Raises:
        MetricsError: there is none, or it is an error, or too long.
    """
    try:
        async with session.get(url) as answer:
            if answer.status != 200:
                raise MetricsError(url, f"HTTP {answer.status} {answer.reason}: expected 200 and a metrics text")
            content = await read_at_most(answer.content, MOST_BYTES)
    except TimeoutError:
        raise MetricsError(url, f"no answer within {timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise MetricsError(url, f"cannot be reached: {reason(error)}") from error
    if content is None:
        raise MetricsError(url, f"more than {MOST_BYTES:,} bytes: expected a metrics text")
    return content


async def read_at_most(stream: aiohttp.StreamReader, most: int) -> bytes | None:
    """A body of at most `most` bytes; None where it is longer."""
    content = bytearray()
    async for chunk in stream.iter_chunked(2**16):
        content += chunk
        if len(content) > most:
            return None
    return bytes(content)


def without_histograms(text: str) -> str:
    """A metrics text less its histograms: nearly all of its lines."""
    lines = text.split("\n")
    declared = (line.split() for line in lines if line.startswith("# TYPE") and line.endswith("histogram"))
    names = {words[2] for words in declared if len(words) == 4}
    return "\n".join(line for line in lines if line.startswith("#") or family_of(line) not in names)


def family_of(line: str) -> str:
    """The family that a sample of a histogram belongs to; any other sample's name, less what looks like a part's."""
    name = line.partition("{")[0].partition(" ")[0]
    for part in ("_bucket", "_sum", "_count", "_created"):
        if name.endswith(part):
            return name.removesuffix(part)
    return name


def reason(error: Exception) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no such host {error.host!r}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return (error.os_error.strerror or str(error.os_error)).lower()
    return str(error) or type(error).__name__


async def scrape_url(url: str, timeout_s: float = TIMEOUT_S) -> Reading:
    """One reading of a server; errors as in Scraper.read."""
    async with Scraper(url, timeout_s) as scraper:
        return await scraper.read()


def scrape(source: str) -> Reading:
    """One reading of a URL or a file.

    Raises:
        MetricsError: it cannot be read, or holds no metrics.
    """
    if "://" in source:
        return asyncio.run(scrape_url(source))
    return read_file(source)
