"""A real server's metrics as Headway reads them."""

from typing import Any

import pytest

from tests.support.running import until
from tests.vllm.asking import ask, facts, user
from tests.vllm.servers import BLOCK_TOKENS, MODEL, Server

pytestmark = pytest.mark.vllm

scrape = pytest.importorskip("control.adapters.scrape", reason="the reader of metrics is not there yet").scrape


def finished_after(before: Any, reading: Any) -> Any:
    """The reading, if one more call has ended and none runs."""
    return reading if reading.requests_finished == before.requests_finished + 1 and not reading.running else None


def test_a_real_servers_metrics_read_as_what_was_done_to_it(small: Server) -> None:
    before = scrape(small.url)
    answer = ask(small, user(facts(30, "scraped")), tokens=16)
    after = until(lambda: finished_after(before, scrape(small.url)), "the call is counted")
    assert (after.engine, after.model) == ("vllm", MODEL)
    assert (after.running, after.waiting, after.kv_used_fraction) == (0, 0, 0)
    assert (after.kv_capacity_tokens, after.kv_block_tokens) == (2048 * BLOCK_TOKENS, BLOCK_TOKENS)
    assert after.prompt_tokens - before.prompt_tokens == answer.prompt_tokens
    assert after.generation_tokens - before.generation_tokens == 16
    assert after.ttft.count - before.ttft.count == 1
