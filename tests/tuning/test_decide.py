"""When a tuning result becomes a change of alpha, and when the load counts as another one."""

import pytest

from control.tuning.alpha import Choice
from control.tuning.decide import (
    AUTO,
    OFF,
    SUGGEST,
    Judged,
    Load,
    Memory,
    Promise,
    TunerSettings,
    has_drifted,
    is_broken,
    verdict,
)
from control.tuning.replay import Review

SETTINGS = TunerSettings()


def choice(gain: float = 0.2, low: float = 0.1, alpha: float = 0.1) -> Choice:
    """A result that proposes `alpha` instead of 0.5."""
    return Choice(alpha, 0.5, gain, low, 2.0 * gain - low, 80.0, 75.0, 90.0)


@pytest.mark.parametrize(
    ("found", "mode", "pinned", "cooling_s", "decision", "said"),
    [
        (choice(), AUTO, False, 0.0, "applied", "20.0 % lower"),
        (choice(), SUGGEST, False, 0.0, "suggested", "only suggests"),
        (choice(), OFF, False, 0.0, "suggested", "only suggests"),
        (choice(), AUTO, True, 0.0, "suggested", "pinned"),
        (choice(), AUTO, False, 120.0, "suggested", "120 s"),
        (choice(gain=0.02), AUTO, False, 0.0, "kept", "under 3 %"),
        (choice(low=-0.01), AUTO, False, 0.0, "kept", "holds zero"),
        (choice(low=0.0), AUTO, False, 0.0, "kept", "holds zero"),
        (choice(alpha=0.52), AUTO, False, 0.0, "kept", "best already"),
    ],
)
def test_alpha_moves_only_where_it_is_worth_it_and_allowed(
    found: Choice, mode: str, pinned: bool, cooling_s: float, decision: str, said: str
) -> None:
    ruled = verdict(found, mode, pinned, cooling_s, SETTINGS)
    assert ruled.decision == decision
    assert said in ruled.reason


def load(arrived: int = 100, rate: float = 1.0, tokens: float = 5000.0, sd: float = 50.0, up: int = 4) -> Load:
    """A load."""
    return Load(arrived, rate, tokens, sd, up)


@pytest.mark.parametrize(
    ("now", "drifted"),
    [
        (load(), False),
        (load(rate=1.2), False),  # less than the share that counts
        (load(rate=1.6), True),
        (load(rate=0.4), True),
        (load(arrived=8, rate=1.6), False),  # eight arrivals say little about a rate
        (load(tokens=7000.0), True),
        (load(tokens=7000.0, sd=900.0), False),
        (load(up=3), True),
        (load(arrived=0, rate=0.0), False),
    ],
)
def test_drift_is_a_change_that_chance_does_not_explain(now: Load, drifted: bool) -> None:
    assert has_drifted(load(), now, SETTINGS.drift) is drifted


def test_a_promise_is_broken_above_its_band_only() -> None:
    promise = Promise(1, 600.0, 0.5, 0.1, 90.0)
    assert [is_broken(promise, p95_s) for p95_s in (None, 80.0, 90.0, 90.1)] == [False, False, False, True]


def test_what_came_of_a_change_is_said_with_both_alphas() -> None:
    promise = Promise(1, 600.0, 0.5, 0.1, 90.0)
    grown = Judged(promise, 120.0, Review(118.0, 150.0), roll_back=False)
    assert grown.review is not None
    assert grown.review.gain > 0.0
    assert grown.outcome == "P95 120.0 s, promised at most 90.0 s; replayed, α 0.10 gives 118.0 s and 0.50 150.0 s"
    assert Judged(promise, 85.0, None, roll_back=False).outcome == "P95 85.0 s, as promised"
    assert Judged(promise, None, None, roll_back=False).outcome == "nothing has ended that could be judged"


def test_memory_goes_through_json_and_back() -> None:
    from dataclasses import asdict

    import orjson

    memory = Memory(Promise(7, 600.0, 0.5, 0.1, 90.0), 0.3, 7, 580.0, load(), 900.0)
    assert Memory.of(orjson.loads(orjson.dumps(asdict(memory)))) == memory
    assert Memory.of(orjson.loads(orjson.dumps(asdict(Memory())))) == Memory()
