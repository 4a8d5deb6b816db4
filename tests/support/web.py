"""A dashboard seen over HTTP."""

import shutil
import urllib.error
import urllib.request
from typing import Any

import orjson

#: The browser, None where there is none; how it is started, and how long (ms) its tests wait.
CHROMIUM = shutil.which("chromium")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync --disable-dev-shm-usage"
PATIENCE_MS = 60_000


def fetch(url: str, timeout_s: float = 3.0) -> tuple[int, bytes]:
    """Status and body of a GET; status 0 where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as response:
            return int(response.status), bytes(response.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def health(url: str) -> dict[str, Any]:
    """What /api/health says; {} where nobody answers."""
    status, body = fetch(f"{url}/api/health")
    answer: dict[str, Any] = orjson.loads(body) if status in (200, 503) else {}
    return answer


def is_live(url: str) -> bool:
    """Whether the dashboard shows an engine with fresh data."""
    seen = health(url)
    return seen.get("engine") == "up" and (seen.get("age_s") or 99.0) < 3.0
