"""What a client sees of a server that dies under it."""

from pathlib import Path

import httpx2
import openai
import pytest

from tests.support.running import until
from tests.vllm.asking import opened, user
from tests.vllm.servers import Server, serving

pytestmark = pytest.mark.vllm


def test_a_server_killed_in_the_middle_of_a_stream_breaks_the_connection(logs: Path) -> None:
    server = Server("small")
    with serving(logs, server), server.client() as client:
        stream = opened(client, user("hello"), tokens=2000)
        assert next(stream).choices
        server.kill()
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            for _ in stream:
                pass
        until(lambda: server.get("/health")[0] == 0, "nobody answers")
