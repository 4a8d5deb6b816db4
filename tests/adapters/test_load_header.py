"""The load header of a response: two forms, and rubbish that must not fail the request it came with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.adapters.load_header import parse_load_header


@pytest.mark.parametrize(
    "text",
    [
        "TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0",
        "kv_cache_usage_perc=0.4,num_requests_waiting=3",
        'JSON {"named_metrics": {"kv_cache_usage_perc": 0.4, "num_requests_waiting": 3}}',
        '{"kv_cache_usage_perc": 0.4, "num_requests_waiting": 3, "more": "x"}',
        "TEXT rubbish, named_metrics.kv_cache_usage_perc=40, =, num_requests_waiting=3, a=b=c",
    ],
)
def test_both_forms(text: str) -> None:
    reading = parse_load_header(text)
    assert (reading.kv_used_fraction, reading.waiting, reading.running) == (0.4, 3, None)
    assert reading.engine == "vllm"


@pytest.mark.parametrize("text", ["", "TEXT", "JSON [1, 2]", 'JSON {"kv_cache_usage_perc": true', "x" * 10_000])
def test_rubbish_is_an_empty_reading(text: str) -> None:
    assert parse_load_header(text).is_empty()


def test_numbers_that_are_none_are_not_there() -> None:
    reading = parse_load_header("kv_cache_usage_perc=nan, num_requests_waiting=-1, num_requests_running=inf")
    assert (reading.kv_used_fraction, reading.waiting, reading.running) == (None, None, None)


@given(st.one_of(st.text(), st.text().map("TEXT kv_cache_usage_perc=".__add__), st.text().map('JSON {"a": '.__add__)))
def test_never_raises(text: str) -> None:
    parse_load_header(text)
