"""The measuring client, against a small engine on real sockets, and its arithmetic on made-up times."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from control.adapters import filler
from control.adapters.completions import TEXT, Answer, ask, session
from control.adapters.identify import cache_config, identify, root_of
from control.adapters.probe import Measured, Probe
from control.adapters.probe_plan import Experiment, fits, plan
from control.adapters.probe_windows import decode_window, longest_gap
from control.errors import InputError
from control.model.measured import Iteration, Limits, chunked
from control.tuning.calibrate import calibrate
from tests.support.tiny_engine import TOKENS_A_WORD, TinyEngine, serving


def answer(pieces_s: list[float], tokens: int = 0, prompt: int = 100, sent_s: float = 0.0) -> Answer:
    return Answer(sent_s, pieces_s, pieces_s[-1], "", prompt, tokens)


def test_what_a_server_says_of_itself_is_read() -> None:
    async def limits() -> Limits:
        async with serving(TinyEngine()) as url, session(10.0) as client:
            return await identify(client, root_of(url + "/v1/"))

    assert asyncio.run(limits()) == Limits("tiny", "0.19.0", 4096, 8192, 16)


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "ftp://host", "http://a b", "http://host/v2"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="expected http://HOST:PORT"):
        root_of(url)


def test_nobody_there_and_another_model_are_told() -> None:
    async def nobody() -> None:
        async with session(5.0) as client:
            await identify(client, "http://127.0.0.1:9")

    async def other() -> None:
        async with serving(TinyEngine()) as url, session(5.0) as client:
            await identify(client, url, "nope")

    with pytest.raises(InputError, match=r"127.0.0.1:9/v1/models: .*expected an OpenAI-compatible server"):
        asyncio.run(nobody())
    with pytest.raises(InputError, match=r"--model = 'nope': http://.* serves tiny"):
        asyncio.run(other())


def test_cache_sizes_are_read_from_labels_old_and_new() -> None:
    labels = cache_config('vllm:cache_config_info{block_size="16",kv_cache_size_tokens="4096"} 1.0\n')
    assert labels == {"block_size": "16", "kv_cache_size_tokens": "4096"}
    assert cache_config("# nothing of it\nvllm:num_requests_running 0\n") == {}
    assert cache_config("vllm:cache_config_info{broken 1\n") == {}


def probed(engine: TinyEngine, limits: dict[str, Any], budget_s: float) -> Measured:
    async def run() -> Measured:
        async with serving(engine) as url, session(60.0) as client:
            known = (await identify(client, url))._replace(**limits)
            return await Probe(client, url, known, budget_s).measure(lambda *_: None)

    return asyncio.run(run())


SMALL = {"max_num_seqs": 4, "max_num_batched_tokens": 512, "max_model_len": 1400}


def test_a_server_is_measured_and_its_profile_fitted() -> None:
    """Every regime has points, longer work takes longer, and what is sent is what was planned."""
    engine = TinyEngine(base_ms=1.0, seq_ms=0.5, token_ms=0.02)
    told = probed(engine, SMALL, 4.0)
    regimes = [point.regime for point in told.points]
    assert min(regimes.count(name) for name in ("prefill", "decode", "mixed")) >= 2
    prefills = {sum(i.prefill for i in p.iterations): p.ms for p in told.points if p.regime == "prefill"}
    assert prefills[max(prefills)] > prefills[min(prefills)]
    assert all(body["ignore_eos"] and body["stream"] for body in engine.seen)
    found = calibrate(told.points, Limits("tiny", "0.19.0", **{**SMALL, "kv_tokens": 8192}), "tiny", "now")
    assert found.decode.base.y[0] > 0.0
    assert found.fit["all"]["points"] == len(told.points)


def test_no_prompt_is_sent_twice() -> None:
    """A prompt sent before would be found in the prefix cache, and its prefill look free."""
    engine = TinyEngine(base_ms=0.2, seq_ms=0.0, token_ms=0.0)
    probed(engine, SMALL, 2.0)
    starts = [body["prompt"][:40] for body in engine.seen]
    assert len(starts) > 20
    assert len(set(starts)) == len(starts)


def test_tokens_are_counted_by_tokenize_where_no_usage_comes() -> None:
    async def rate() -> filler.Rate:
        async with serving(TinyEngine(usage=False)) as url, session(10.0) as client:
            probe = Probe(client, url, await identify(client, url))
            await probe.prepare()
            return probe.rate

    assert asyncio.run(rate()) == filler.Rate(TOKENS_A_WORD, 0.0)


def test_words_become_the_wanted_tokens() -> None:
    rate = filler.learned(filler.SHORT * 3 + 12, filler.LONG * 3 + 12)
    assert rate == filler.Rate(3.0, 12.0)
    assert rate.words(300) == 100
    assert len(filler.text(100, "a").split()) == 100
    assert filler.text(100, "a").startswith(filler.text(20, "a"))
    assert filler.text(20, "a") != filler.text(20, "b")
    assert filler.learned(10, 10) == filler.Rate()


def test_iterations_are_timed_where_all_streams_decode() -> None:
    """The second stream starts late and the first ends early: only the time between counts."""
    first = answer([0.0, *(1.0 + 0.1 * k for k in range(11))])
    second = answer([1.0 + 0.1 * k for k in range(21)])
    window = decode_window([first, second])
    assert window is not None
    assert window.ms == pytest.approx(100.0)
    assert window.kv == pytest.approx(200 + 7 + 6)
    assert decode_window([answer([0.0, 0.1, 0.2]), second]) is None


def test_pieces_of_several_tokens_count_as_their_tokens() -> None:
    window = decode_window([answer([0.2 * k for k in range(11)], tokens=22)])
    assert window is not None
    assert window.ms == pytest.approx(100.0)


def test_a_prompt_beside_streams_is_seen_as_their_longest_gap() -> None:
    times = [0.1, 0.2, 0.3, 0.8, 0.9, 1.0]
    beside = answer([0.8], sent_s=0.25)
    gap = longest_gap([answer(times), answer(times)], beside)
    assert gap is not None
    assert gap.ms == pytest.approx(500.0)
    assert gap.kv == pytest.approx(2 * (100 + 2))
    assert longest_gap([answer(times[:3])], beside) is None


def test_experiments_stay_within_the_server() -> None:
    limits = Limits("m", "", 2048, 8192, 16, 4, 512)
    experiments = plan(limits)
    assert len(experiments) == len(set(experiments))
    for one in experiments:
        assert one.streams + (one.regime == "mixed") <= 4
        assert one.context + one.outputs(512) < 2048
        assert one.prefill < 2048
    assert {one.regime for one in experiments[:15]} == {"prefill", "decode", "mixed"}
    assert not fits(Experiment("decode", 3, 1900), limits)
    assert chunked(1200, 512) == (Iteration(0, 0, 512, 0), Iteration(0, 0, 512, 512), Iteration(0, 0, 176, 1024))


def ask_once(engine: TinyEngine) -> Answer:
    async def run() -> Answer:
        async with serving(engine) as url, session(10.0) as client:
            return await ask(client, url + TEXT, {"model": "tiny", "prompt": "a b c", "max_tokens": 3})

    return asyncio.run(run())


def test_an_answer_holds_times_tokens_and_text() -> None:
    got = ask_once(TinyEngine())
    assert (got.failure, got.prompt_tokens, got.tokens, got.text) == (None, 6, 3, " word word word")
    assert 0.0 < got.ttft_s <= got.e2e_s
    assert got.tpot_s > 0.0


def test_failures_are_told_apart() -> None:
    full, cut = ask_once(TinyEngine(broken={0: "503"})), ask_once(TinyEngine(broken={0: "cut"}))
    assert (full.failure, full.message) == ("http 503", "the queue is full")
    assert cut.failure == "cut"

    async def refused() -> Answer:
        async with session(5.0) as client:
            return await ask(client, "http://127.0.0.1:9/v1/completions", {})

    assert asyncio.run(refused()).failure == "connect"


def test_an_error_in_the_middle_of_a_stream_is_no_success() -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'data: {"choices": [{"text": "a"}]}\n\ndata: {"error": {"message": "out of memory"}}\n\n')
        return response

    async def run() -> Answer:
        app = web.Application()
        app.router.add_post("/v1/completions", broken)
        async with TestServer(app) as server, session(5.0) as client:
            return await ask(client, str(server.make_url("/v1/completions")), {})

    got = asyncio.run(run())
    assert (got.failure, got.message) == ("stream", "out of memory")


def test_a_hanging_server_times_out() -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async def run() -> Answer:
        app = web.Application()
        app.router.add_post("/v1/completions", hang)
        async with TestServer(app) as server, session(0.3) as client:
            return await ask(client, str(server.make_url("/v1/completions")), {})

    assert asyncio.run(run()).failure == "timeout"
