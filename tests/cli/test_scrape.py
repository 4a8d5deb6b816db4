"""`headway scrape`: the fields other tools rely on, a table for people, one line for whatever cannot be read."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.pages import Pages, serving
from tests.cli.conftest import Headway
from tests.support.running import object_of

FIELDS = {
    "engine",
    "version",
    "running",
    "waiting",
    "kv_used_fraction",
    "kv_used_tokens",
    "kv_capacity_tokens",
    "prefix_hit_fraction",
    "preemptions",
    "generation_tokens",
    "power_w",
    "ttft_mean_s",
    "ttft_p95_s",
    "gpus",
}
GPU_FIELDS = {
    "name",
    "uuid",
    "index",
    "power_w",
    "power_limit_w",
    "energy_j",
    "utilization",
    "memory_used_mib",
    "memory_total_mib",
    "temperature_c",
}
ENGINE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 16.0
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",kv_cache_size_tokens="None"} 1.0
vllm:time_to_first_token_seconds_bucket{le="0.5"} 1.0
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 2.0
vllm:time_to_first_token_seconds_count 2.0
vllm:time_to_first_token_seconds_sum 5.0
"""
GPU = "index, name, power.draw [W], power.limit [W], memory.used [MiB]\n0, NVIDIA L4, 70.12 W, 72.00 W, [N/A]\n"


@pytest.fixture
def pages() -> Iterator[Pages]:
    """An HTTP server of pages."""
    with serving() as server:
        yield server


def test_json_of_a_server_has_every_field_and_null_for_what_is_not_there(headway: Headway, pages: Pages) -> None:
    pages["/metrics"], pages["/version"] = (200, ENGINE), (200, '{"version": "0.12.0"}')
    said = headway("scrape", pages.url, "--json")
    told = object_of(said.out)
    assert (said.code, said.err) == (0, "")
    assert told.keys() >= FIELDS
    assert (told["engine"], told["version"], told["running"], told["waiting"]) == ("vllm", "0.12.0", 16, 0)
    assert (told["kv_used_tokens"], told["kv_capacity_tokens"]) == (4000, 16000)
    assert (told["prefix_hit_fraction"], told["power_w"], told["gpus"]) == (None, None, [])
    assert (told["ttft_mean_s"], told["ttft_p95_s"]) == (2.5, 0.5)


def test_json_of_gpus(headway: Headway) -> None:
    Path("gpu.csv").write_text(GPU)
    told = object_of(headway("scrape", "gpu.csv", "--json").out)
    (gpu,) = told["gpus"]
    assert told.keys() >= FIELDS
    assert gpu.keys() >= GPU_FIELDS
    assert (told["engine"], told["running"], told["power_w"]) == (None, None, 70.12)
    assert (gpu["name"], gpu["power_limit_w"], gpu["memory_used_mib"]) == ("NVIDIA L4", 72, None)


def test_table_shows_units_and_only_what_is_there(headway: Headway, pages: Pages) -> None:
    pages["/metrics"] = 200, ENGINE
    out = headway("scrape", pages.url + "/metrics").out
    for words in ("16 requests", "0 requests", "25 %", "4000 tokens", "16,000 tokens", "2.5 s", "≥ 0.5 s"):
        assert words in out
    assert "prefix" not in out
    assert "power" not in out


def test_table_of_gpus(headway: Headway) -> None:
    Path("gpu.csv").write_text(GPU)
    row = headway("scrape", "gpu.csv").out.splitlines()[-1]
    assert row.split("  ")[0] == "0 NVIDIA L4"
    assert "70.12 W" in row
    assert "–" in row


def test_server_that_starts_is_empty_but_no_error(headway: Headway, pages: Pages) -> None:
    pages["/metrics"] = 200, "python_info 1\n"
    said = headway("scrape", pages.url, "--json")
    assert (said.code, object_of(said.out)["engine"]) == (0, None)
    assert "no metrics of vLLM, SGLang or a GPU in it" in said.err


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("missing.prom", "missing.prom: no such file or directory"),
        ("folder", "folder: is a directory"),
        ("empty.prom", "empty.prom: the text is empty"),
        ("binary.prom", "binary.prom: byte 1 is no UTF-8"),
        ("page.prom", "page.prom: line 1: '<html>': expected a metrics text"),
        ("cut.csv", "cut.csv:2: 1 cells: expected 5 as in the header"),
        ("ftp://host", "ftp://host: expected a URL like http://host:8000"),
        ("localhost:8000", "localhost:8000: no such file: a server is named with http://"),
        ("http://127.0.0.1:1", "cannot be reached"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_2(headway: Headway, source: str, words: str) -> None:
    Path("folder").mkdir()
    Path("empty.prom").write_text("\n")
    Path("binary.prom").write_bytes(b"\x80\x01\x00")
    Path("page.prom").write_text("<html>\n")
    Path("cut.csv").write_text(GPU.splitlines()[0] + "\n0\n")
    said = headway("scrape", source, "--json")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert words in said.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read(headway: Headway) -> None:
    Path("secret.prom").write_text(ENGINE)
    Path("secret.prom").chmod(0)
    assert "secret.prom: permission denied" in headway("scrape", "secret.prom").err
