"""What a client sees of a server that dies under it."""

from pathlib import Path

import openai
import pytest

from tests.support.running import until
from tests.vllm.asking import opened, user
from tests.vllm.servers import Server, serving

pytestmark = pytest.mark.vllm


def test_a_server_killed_in_the_middle_of_a_stream_breaks_the_connection(logs: Path) -> None:
    server = Server("small")
    with serving(logs, server), server.client() as client, opened(client, user("hello"), tokens=2000) as stream:
        next(stream)
        server.kill()
        with pytest.raises(openai.APIConnectionError):
            for _ in stream:
                pass
        until(lambda: server.get("/health")[0] == 0, "nobody answers")


def test_an_engine_that_dies_under_its_server_ends_the_stream_with_an_error_inside_a_200(logs: Path) -> None:
    server = Server("small")
    with serving(logs, server), server.client() as client, opened(client, user("hello"), tokens=2000) as stream:
        next(stream)
        server.kill("VLLM::EngineCore")
        with pytest.raises(openai.APIError, match="EngineCore"):
            for _ in stream:
                pass
        assert stream.response.status_code == 200
        until(lambda: server.get("/health")[0] != 200, "it is not well any more")
