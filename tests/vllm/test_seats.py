"""What a server does with more calls than it has seats for."""

import openai
import pytest

from tests.support.running import until
from tests.vllm.asking import Answer, ask, opened, pool, user
from tests.vllm.conftest import QUEUE
from tests.vllm.servers import CONTEXT_TOKENS, Server

pytestmark = pytest.mark.vllm

LONG = CONTEXT_TOKENS - 96  # tokens: longer than any test waits, unless it is cancelled
RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


def wait_for(server: Server, running: int, waiting: int) -> None:
    """Return once so many calls run and wait there."""
    wanted = (running, waiting)
    until(lambda: (server.metric(RUNNING), server.metric(WAITING)) == wanted, f"{running} run, {waiting} wait")


def test_a_lower_priority_goes_first_once_the_seat_is_free(crowded: Server) -> None:
    answers = {priority: Answer() for priority in (5, 1, 3, 2)}
    asked = []
    with pool(QUEUE) as threads, crowded.client() as client, opened(client, user("hello"), tokens=LONG):
        wait_for(crowded, 1, 0)
        for priority, answer in answers.items():
            asked.append(threads.submit(ask, crowded, user("short"), answer=answer, tokens=8, priority=priority))
            wait_for(crowded, 1, len(asked))
    for one in asked:
        one.result()
    assert sorted(answers, key=lambda priority: answers[priority].first_s or 0.0) == sorted(answers)


def test_a_client_that_leaves_frees_its_seat(crowded: Server) -> None:
    before = crowded.metric("vllm:generation_tokens_total") or 0.0
    with crowded.client() as client, opened(client, user("hello"), tokens=LONG) as stream:
        next(stream)
        wait_for(crowded, 1, 0)
    wait_for(crowded, 0, 0)
    assert (crowded.metric("vllm:generation_tokens_total") or 0.0) - before < LONG
    assert ask(crowded, user("next"), tokens=2).text


def test_a_full_server_says_503_and_serves_those_that_wait(crowded: Server) -> None:
    with pool(QUEUE) as threads, crowded.client() as client, opened(client, user("hello"), tokens=LONG):
        wait_for(crowded, 1, 0)
        waiting = [threads.submit(ask, crowded, user(f"waits {number}"), tokens=2) for number in range(QUEUE)]
        wait_for(crowded, 1, QUEUE)
        with pytest.raises(openai.InternalServerError) as refused:
            ask(crowded, user("one too many"))
        assert crowded.get("/health")[0] == 200
    assert refused.value.status_code == 503
    assert "busy" in refused.value.message
    assert all(one.result().text for one in waiting)
    assert crowded.metric("vllm:admission_rejections_total") == 1
