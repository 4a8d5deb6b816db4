"""Profiles of real servers follow what is served."""

from typing import Any

import numpy as np
import pytest

from control.engine.refine import LEAST, refine
from control.engine.spare import start_gateway
from control.engine.state import Live
from control.model.fleet import Fleet, InstanceSpec


def live() -> Live:
    """A real server beside a simulated instance."""
    specs = (
        InstanceSpec("s", "H100", "Llama-3.1-8B", url="http://s"),
        InstanceSpec("t", "H100", "Llama-3.1-8B"),
    )
    return start_gateway(Fleet("one", specs), "hexgen", 0.5)


def seen(ttft: float | None, tpot: float | None, compared: int = LEAST, refined: int = 0) -> dict[str, Any]:
    """What the gateway publishes of a server that drifted so far."""
    return {"compared": compared, "ttft_drift": ttft, "tpot_drift": tpot, "refined": refined}


def test_costs_follow_what_was_served_on_that_server_alone() -> None:
    state = live()
    before = state.world.costs.decode_ms[state.world.instances["profile"]].copy()
    state.observed[0] = seen(0.5, -0.2)
    (told,) = refine(state)
    assert told == "s: prefill now x1.22, decode x0.89 of its profile"
    after = state.world.costs.decode_ms[state.world.instances["profile"]]
    np.testing.assert_allclose(after[0], 0.8944 * before[0])
    np.testing.assert_array_equal(after[1], before[1])


def test_factors_are_taken_on_top_of_those_in_force_and_stay_in_bounds() -> None:
    state = live()
    state.observed[0] = seen(0.5, 0.5)
    refine(state)
    assert refine(state) == []  # no comparison since: the old drift says nothing any more
    state.observed[0] = seen(0.21, 50.0, refined=1)
    refine(state)
    assert state.fleet.instances[0].prefill_scale == pytest.approx(1.1 * 1.2247, abs=1e-3)
    assert state.fleet.instances[0].decode_scale == 5.0


@pytest.mark.parametrize("row", [seen(0.08, -0.09), seen(None, None), seen(0.5, 0.5, compared=LEAST - 1), {}])
def test_little_drift_and_few_calls_change_nothing(row: dict[str, Any]) -> None:
    state = live()
    state.observed[0] = row
    assert refine(state) == []
    assert state.fleet == state.given
