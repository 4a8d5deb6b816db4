"""What a server says of itself: its model, version, limits and KV capacity."""

import re
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson
from prometheus_client.parser import text_string_to_metric_families

from control.errors import InputError
from control.model.measured import Limits


def root_of(url: str) -> str:
    """The server's address without a path. InputError for what is no address."""
    found = re.fullmatch(r"(https?://[^/\s]+)(/v1)?/*", url.strip())
    if not found:
        raise InputError(f"--url = {url!r}: expected http://HOST:PORT")
    return found[1]


async def identify(client: aiohttp.ClientSession, root: str, model: str | None = None) -> Limits:
    """The server's facts; `model` where it serves several.

    Raises InputError: nobody answers there, or not as an OpenAI-compatible server does.
    """
    entry = chosen(root, await fetch(client, f"{root}/v1/models", needed=True), model)
    version = parsed(await fetch(client, f"{root}/version")).get("version", "")
    cache = cache_config((await fetch(client, f"{root}/metrics")).decode("utf-8", "replace"))
    size = whole(cache.get("block_size"))
    blocks = whole(cache.get("num_gpu_blocks"))
    return Limits(
        model=str(entry["id"]),
        version=str(version),
        max_model_len=whole(entry.get("max_model_len")),
        kv_tokens=whole(cache.get("kv_cache_size_tokens")) or (blocks * size if blocks and size else None),
        block_size=size,
        max_num_seqs=whole(cache.get("max_num_seqs")),
        max_num_batched_tokens=whole(cache.get("max_num_batched_tokens")),
    )


async def fetch(client: aiohttp.ClientSession, url: str, needed: bool = False) -> bytes:
    """The body at `url`; nothing where it is not there and not `needed`."""
    try:
        async with client.get(url) as response:
            if response.status == 200:
                return await response.read()
            reason = f"HTTP {response.status}"
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        reason = str(error) or type(error).__name__
    if needed:
        raise InputError(f"{url}: {reason}: expected an OpenAI-compatible server")
    return b""


def chosen(root: str, body: bytes, model: str | None) -> Mapping[str, Any]:
    """The entry of the wanted or of the first model. InputError where there is none such."""
    entries = parsed(body).get("data")
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) and "id" in e for e in entries):
        raise InputError(f"{root}/v1/models: no model in the answer: expected an OpenAI-compatible server")
    for entry in entries:
        if model in (None, entry["id"]):
            return dict(entry)
    names = ", ".join(str(entry["id"]) for entry in entries)
    raise InputError(f"--model = {model!r}: {root} serves {names}")


def parsed(body: bytes) -> Mapping[str, Any]:
    """A JSON object, empty where it is none."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def cache_config(text: str) -> Mapping[str, str]:
    """Labels of vllm:cache_config_info, empty where the server has no such family."""
    lines = "\n".join(line for line in text.splitlines() if "cache_config_info" in line) + "\n"
    try:
        for family in text_string_to_metric_families(lines):
            for sample in family.samples:
                return dict(sample.labels)
    except ValueError:
        return {}
    return {}


def whole(value: object) -> int | None:
    """A whole number from 1 on, however written; None for anything else ("None" is one of them)."""
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if number > 0 else None
