"""The gateway on its own thread, with an engine's loop beside it."""

import asyncio
import threading
from dataclasses import replace

import pytest

from control.adapters.mock.serve import running
from control.adapters.mock.settings import MockSettings
from control.config import GatewaySettings
from control.errors import SettingError
from control.gateway.host import GatewayHost
from control.model.fleet import Fleet
from tests.support.stage import SPEC, Stage, check_books, make_stage, play

FAST = MockSettings(ttft_ms=5.0, tpot_ms=2.0)


def look_on(stage: Stage, over: threading.Event) -> None:
    """What an engine does to the world all the while: move it, copy it, drain its journal."""
    while not over.wait(0.005):
        stage.door.still()


def test_requests_and_the_engine_share_one_world() -> None:
    async def scene() -> None:
        async with running(FAST) as one, running(FAST) as other:
            specs = [replace(SPEC, name=f"s{i}", url=up.url, window=16) for i, up in enumerate((one, other))]
            stage = make_stage([one, other], Fleet("two", tuple(specs)), "hexgen", {})
            over = threading.Event()
            engine = threading.Thread(target=look_on, args=(stage, over))
            await asyncio.to_thread(stage.host.start)
            engine.start()
            try:
                await stage.ready()
                tasks = [asyncio.create_task(stage.stream({"x-session-id": f"t{k % 20}"})) for k in range(200)]
                await asyncio.sleep(0)
                for task in tasks[::10]:
                    task.cancel()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                whole = [x for x in answers if not isinstance(x, BaseException)]
                assert len(whole) == 180
                assert all(status == 200 and text.rstrip().endswith(b"[DONE]") for status, text in whole)
            finally:
                over.set()
                engine.join()
                await stage.session.close()
                await asyncio.to_thread(stage.host.stop)
            stage.door.close_idle(0.0)
            stage.door.drain()
            check_books(stage.door)

    play(scene)


def test_a_port_that_is_taken_is_said() -> None:
    async def scene() -> None:
        async with running(FAST) as one:
            port = one.mock.address[1]
            stage = make_stage([], Fleet("one", (replace(SPEC, name="s", url=one.url),)), "hexgen", {})
            host = GatewayHost(stage.door, GatewaySettings(port=port))
            with pytest.raises(SettingError, match=str(port)):
                await asyncio.to_thread(host.start)
            host.loop.call_soon_threadsafe(host.loop.stop)
            await stage.session.close()

    play(scene)
