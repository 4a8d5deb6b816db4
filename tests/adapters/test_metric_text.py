"""Readings of engines: what the recorded texts say, and what goes wrong with texts in the field."""

from pathlib import Path

import pytest

from control.adapters.faults import MetricsError
from control.adapters.reading import Reading
from control.adapters.recognise import read_file, read_text
from tests.adapters.pages import written

METRICS = (
    "sglang_docs_llama31-8b_loaded.prom",
    "vllm_0.12.0_v1.prom",
    "vllm_0.5_v0engine_opt125m_2024-06.prom",
    "vllm_0.8.5_v1.prom",
)
CONFIG = "vllm:cache_config_info{%s} 1.0\nvllm:kv_cache_usage_perc 0.5\n"


def vllm(text: str, **given: bool) -> Reading:
    """The reading of a text."""
    return read_text(text, "server", 1.0, **given)


def test_no_recorded_text_is_left_unread(recorded: Path) -> None:
    assert sorted(path.name for path in (recorded / "metrics").glob("*.prom")) == sorted(METRICS)


def test_vllm_0_5_has_zeros_that_are_zeros_and_gaps_that_are_gaps(recorded: Path) -> None:
    path = recorded / "metrics" / METRICS[2]
    text, reading = path.read_text(), read_file(str(path))
    assert (reading.engine, reading.model, reading.ranks) == ("vllm", "facebook/opt-125m", 1)
    assert 'num_gpu_blocks="7281"' in text
    assert 'block_size="16"' in text
    assert 'num_gpu_blocks_override="None"' in text
    assert reading.kv_capacity_tokens == 7281 * 16
    assert (reading.running, reading.waiting, reading.swapped, reading.preemptions) == (0, 0, 0, 0)
    assert (reading.kv_used_fraction, reading.kv_used_tokens) == (0, 0)
    assert (reading.prefix_hit_fraction, reading.queue, reading.awake, reading.rejections) == (None,) * 4
    assert reading.generation_tokens == written(text, "vllm:generation_tokens_total{") == 7
    assert reading.requests_finished == written(text, "vllm:request_success_total{") == 1
    assert reading.ttft is not None
    assert reading.itl is not None
    assert reading.ttft.mean_s() == written(text, "vllm:time_to_first_token_seconds_sum{")
    assert reading.itl.count == written(text, "vllm:time_per_output_token_seconds_count{") == 6


def test_vllm_0_8_counts_its_prefix_cache_in_blocks(recorded: Path) -> None:
    path = recorded / "metrics" / METRICS[3]
    text, reading = path.read_text(), read_file(str(path))
    assert "in terms of number of queried blocks" in text
    assert reading.running == written(text, "vllm:num_requests_running{") == 16
    assert reading.kv_used_fraction == written(text, "vllm:gpu_cache_usage_perc{") == 0
    assert (reading.kv_capacity_tokens, reading.kv_used_tokens) == (None, None), "the text has no cache_config_info"
    assert (reading.prefix_hit_fraction, reading.prefix_query_tokens) == (None, None), "0 of 0 is no share"
    assert reading.queue is not None
    mean_s = written(text, "vllm:request_queue_time_seconds_sum{") / 2000
    assert reading.queue.mean_s() == pytest.approx(mean_s)


def test_vllm_0_12_gives_everything(recorded: Path) -> None:
    path = recorded / "metrics" / METRICS[1]
    text, reading = path.read_text(), read_file(str(path))
    assert (reading.running, reading.waiting, reading.preemptions, reading.awake) == (16, 0, 3, 1)
    assert reading.kv_used_fraction == written(text, "vllm:kv_cache_usage_perc{") == 0.32
    hits, queries = (written(text, f"vllm:prefix_cache_{name}_total{{") for name in ("hits", "queries"))
    assert (reading.prefix_hit_tokens, reading.prefix_query_tokens) == (hits, queries) == (905921, 2209565)
    assert reading.prefix_hit_fraction == pytest.approx(0.41, abs=1e-4)
    assert reading.requests_finished == 1820 + 171 + 9 + 0, "all reasons together"
    assert reading.prompt_tokens == written(text, "vllm:prompt_tokens_total{")
    assert reading.e2e is not None
    assert reading.e2e.count == 2000


@pytest.mark.parametrize(("field", "name"), [("ttft", "time_to_first_token"), ("e2e", "e2e_request_latency")])
def test_quantiles_lie_in_the_buckets_that_the_text_has(recorded: Path, field: str, name: str) -> None:
    text = (recorded / "metrics" / METRICS[1]).read_text()
    times = getattr(vllm(text), field)
    for q in (0.5, 0.95):
        below = [bound for bound, count in buckets_of(text, name) if count < q * 2000]
        above = [bound for bound, count in buckets_of(text, name) if count >= q * 2000]
        assert max(below) <= times.quantile_s(q) <= min(above)


def buckets_of(text: str, name: str) -> list[tuple[float, float]]:
    """Bounds and counts by a plain search."""
    lines = [line for line in text.splitlines() if line.startswith(f"vllm:{name}_seconds_bucket{{")]
    return [(float(line.split('le="')[1].split('"')[0]), float(line.rsplit(" ", 1)[1])) for line in lines]


def test_sglang_under_load(recorded: Path) -> None:
    path = recorded / "metrics" / METRICS[0]
    text, reading = path.read_text(), read_file(str(path))
    assert (reading.engine, reading.model) == ("sglang", "meta-llama/Llama-3.1-8B-Instruct")
    assert reading.running == written(text, "sglang:num_running_reqs{") == 162
    assert reading.waiting == written(text, "sglang:num_queue_reqs{") == 2826
    assert reading.kv_used_fraction == written(text, "sglang:token_usage{") == 0.28
    assert reading.kv_used_tokens == written(text, "sglang:num_used_tokens{") == 123859
    assert reading.kv_capacity_tokens is None
    assert reading.prefix_hit_fraction == written(text, "sglang:cache_hit_rate{")
    assert reading.itl is not None
    assert reading.itl.count == 7.400757e06
    assert reading.ttft is not None
    assert reading.ttft.is_open(0.5)
    assert reading.ttft.quantile_s(0.5) == 30


def test_runs_keep_the_cache_of_their_engine_as_a_text(recorded: Path) -> None:
    folder = recorded / "gpu_runs_h100" / "background__llama-2-13b___32_"
    assert 'num_gpu_blocks="2657"' in (folder / "cache_config_server_0.txt").read_text()
    assert read_file(str(folder / "cache_config_server_0.txt")).kv_capacity_tokens == 2657 * 16


def test_share_below_zero_means_that_nothing_was_looked_up(recorded: Path) -> None:
    path = recorded / "gpu_runs_h100" / "background__llama-2-7b___256_" / "cache_config_server_0.txt"
    assert written(path.read_text(), "vllm:gpu_prefix_cache_hit_rate{") == -1
    assert read_file(str(path)).prefix_hit_fraction is None


def test_percentage_is_turned_into_a_share() -> None:
    reading = vllm("vllm:kv_cache_usage_perc 32\n")
    assert (reading.kv_used_fraction, reading.kv_in_percent) == (0.32, True)
    assert vllm("vllm:kv_cache_usage_perc 1.0\n").kv_used_fraction == 1, "full, not one per cent"
    assert vllm("vllm:kv_cache_usage_perc 0.8\n", in_percent=True).kv_used_fraction == pytest.approx(0.008)


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [
        ('kv_cache_size_tokens="463459",num_gpu_blocks="320",block_size="8"', 463459),
        ('kv_cache_size_tokens="None",num_gpu_blocks="320",block_size="8"', 2560),
        ('num_gpu_blocks="None",block_size="16"', None),
        ('num_gpu_blocks="100",block_size="None"', None),
    ],
)
def test_capacity_is_the_size_told_else_blocks(labels: str, tokens: float | None) -> None:
    reading = vllm(CONFIG % labels)
    assert reading.kv_capacity_tokens == tokens
    assert reading.kv_used_tokens == (None if tokens is None else tokens / 2)


def test_ranks_are_added_and_their_usage_is_weighted_by_capacity() -> None:
    text = """
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 5
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.9
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.1
vllm:cache_config_info{engine="0",kv_cache_size_tokens="1000"} 1
vllm:cache_config_info{engine="1",kv_cache_size_tokens="3000"} 1
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0"} 1
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 2
vllm:time_to_first_token_seconds_count{engine="0"} 2
vllm:time_to_first_token_seconds_sum{engine="0"} 3
vllm:time_to_first_token_seconds_bucket{engine="1",le="1.0"} 4
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf"} 4
vllm:time_to_first_token_seconds_count{engine="1"} 4
vllm:time_to_first_token_seconds_sum{engine="1"} 1
"""
    reading = vllm(text)
    assert (reading.ranks, reading.running, reading.model) == (2, 8, "m")
    assert reading.kv_capacity_tokens == 4000
    assert reading.kv_used_fraction == pytest.approx((0.9 * 1000 + 0.1 * 3000) / 4000)
    assert reading.kv_used_tokens == pytest.approx(1200)
    assert reading.ttft is not None
    assert (reading.ttft.count, reading.ttft.mean_s()) == (6, pytest.approx(4 / 6))
    assert reading.ttft.buckets == ((1.0, 5.0), (float("inf"), 6.0))


def test_ranks_without_a_size_of_their_own_are_as_large_as_the_one_told() -> None:
    usage = "".join(f'vllm:kv_cache_usage_perc{{engine="{rank}"}} 0.5\n' for rank in (0, 1))
    reading = vllm('vllm:cache_config_info{num_gpu_blocks="10",block_size="16"} 1\n' + usage)
    assert (reading.kv_capacity_tokens, reading.kv_used_tokens) == (320, 160)
    assert vllm(usage).kv_used_fraction == 0.5


def test_workers_of_one_engine_are_not_added() -> None:
    text = "".join(f'sglang:num_running_reqs{{tp_rank="{rank}",dp_rank="0"}} 7\n' for rank in range(4))
    assert read_text(text, "server").running == 7


@pytest.mark.parametrize(
    ("said", "tokens"), [("number of queried blocks.", 1600), ("number of queried tokens.", 100), ("", 1600)]
)
def test_old_names_of_the_prefix_cache_are_blocks_unless_they_say_tokens(said: str, tokens: float) -> None:
    text = "".join(
        f"# HELP vllm:gpu_prefix_cache_{name} In terms of {said}\n# TYPE vllm:gpu_prefix_cache_{name} counter\n"
        f"vllm:gpu_prefix_cache_{name}_total {value}\n"
        for name, value in (("queries", 100), ("hits", 25))
    )
    reading = vllm(text + 'vllm:cache_config_info{block_size="16",num_gpu_blocks="9"} 1\n')
    assert (reading.prefix_query_tokens, reading.prefix_hit_fraction) == (tokens, 0.25)
    assert vllm(text).prefix_hit_fraction == 0.25, "the share needs no block size"


def test_waiting_by_reason_is_kept_apart_and_stands_in_for_the_sum() -> None:
    text = "".join(
        f'vllm:num_requests_waiting_by_reason{{reason="{reason}"}} {count}\n'
        for reason, count in (("capacity", 4), ("deferred", 1))
    )
    reading = vllm(text)
    assert (reading.waiting, reading.waiting_capacity, reading.waiting_deferred) == (5, 4, 1)


def test_time_stamp_of_lora_requests_is_no_figure() -> None:
    reading = vllm('vllm:lora_requests_info{max_lora="1",running_lora_adapters=""} 1.7959979e+09\n')
    figures = {name: value for name, value in reading.to_dict().items() if isinstance(value, float)}
    assert figures == {"taken_s": 1.0}


def test_start_up_scrape_is_empty_and_no_error() -> None:
    reading = vllm('python_info{implementation="CPython"} 1.0\nprocess_open_fds 7.0\n')
    assert reading.is_empty()
    assert (reading.engine, reading.running, reading.kv_used_fraction, reading.power_w) == (None,) * 4


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf"])
def test_values_that_are_no_numbers_count_as_not_there(odd: str) -> None:
    assert vllm(f"vllm:num_requests_running {odd}\nvllm:num_requests_waiting 2\n").running is None


@pytest.mark.parametrize("prefix", ["vllm:", "vllm_", "ray_vllm:", "ray_vllm_"])
def test_names_that_relays_rewrote_are_known(prefix: str) -> None:
    assert vllm(f"{prefix}num_requests_running 4\n").running == 4


def test_openmetrics_with_exemplars_is_read() -> None:
    text = (
        '# TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total 9.0 # {trace_id="1"} 1.0\n'
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 2.0\n# EOF\n"
    )
    assert (vllm(text).generation_tokens, vllm(text).running) == (9, 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<html><body>Not found</body></html>\n", "line 1: '<html><body>Not found</body></html>'"),
        ("vllm:num_requests_running 1\nvllm:num_requests_waiting many\n", "line 2: 'vllm:num_requests_waiting many'"),
        ('{"object": "error"}', "line 1"),
        ("\n\n", "no metrics"),
        ("a" * 500, "line 1: 'aaa"),
    ],
)
def test_other_texts_are_refused_in_one_line_that_names_the_place(text: str, line: str) -> None:
    with pytest.raises(MetricsError) as error:
        read_text(text, "http://host/metrics")
    message = str(error.value)
    assert message.startswith("http://host/metrics: ")
    assert line in message
    assert "expected" in message
    assert len(message) < 220
    assert "\n" not in message


def test_every_field_is_in_the_json_whether_known_or_not() -> None:
    told = vllm("vllm:num_requests_running 1\n").to_dict()
    assert told["running"] == 1
    assert told["waiting"] is None
    assert told["gpus"] == []
    for name in ("ttft", "itl", "e2e", "queue", "prefill"):
        assert [told[f"{name}_{figure}"] for figure in ("mean_s", "p50_s", "p95_s", "count")] == [None] * 4
