"""What servers served is kept for the comparison with the twin: all that completed, and nothing else."""

import asyncio
import math

from control.adapters.mock.settings import MockSettings
from tests.support.stage import play, staged

FAST = MockSettings(ttft_ms=20.0, tpot_ms=2.0)


def test_calls_that_completed_are_kept_with_their_sizes_and_times() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            await stage.stream(max_tokens=10)
            await stage.ask(max_tokens=10)
            whole, plain = sorted(stage.gateway.door.live.served[0])
            assert (whole.output_tokens, plain.output_tokens) == (10, 10)
            assert whole.input_tokens == plain.input_tokens > 0
            assert 0.01 < whole.ttft_s < whole.took_s
            assert math.isnan(plain.ttft_s)
            assert plain.took_s > 0.03

    play(scene)


def test_calls_that_failed_or_were_given_up_are_not_kept() -> None:
    async def scene() -> None:
        async with staged(FAST, stall_s=0.3) as stage:
            await stage.ready()
            stage.fault(0, error_after=3)
            await stage.stream(max_tokens=10)
            stage.fault(0, slow_stream=20.0)
            task = asyncio.create_task(stage.stream(max_tokens=1000))
            await asyncio.sleep(0.2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert not stage.gateway.door.live.served

    play(scene)
