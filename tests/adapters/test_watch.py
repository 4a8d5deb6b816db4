"""A source that is missing, one that is old and one that says zero must never look alike."""

from typing import Any

import pytest

from control.adapters.reading import Reading
from control.adapters.watch import Watch


class Clock:
    """A clock that moves when told."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def reading(**fields: Any) -> Reading:
    """A reading of vLLM."""
    return Reading(0.0, "vllm", engine="vllm", **fields)


def watched(*readings: Reading) -> Watch:
    """A watch that has taken these, one a second."""
    clock = Clock()
    watch = Watch(frozen_after=5, clock=clock)
    for one in readings:
        clock.now_s += 1
        watch.take(one)
    return watch


def test_source_never_read_is_missing() -> None:
    watch = Watch()
    watch.miss("connection refused")
    assert (watch.state(), watch.age_s(), watch.latest, watch.failure) == ("missing", None, None, "connection refused")


def test_zero_missing_and_stale_are_three_things() -> None:
    clock = Clock()
    watch = Watch(stale_after_s=5, clock=clock)
    watch.take(reading(running=0.0))
    assert (watch.state("running"), watch.state("waiting"), watch.state()) == ("live", "missing", "live")
    clock.now_s += 5.5
    watch.miss("no answer")
    assert (watch.state("running"), watch.state("waiting"), watch.age_s()) == ("stale", "missing", 5.5)
    assert watch.latest == reading(running=0.0), "the last known value stays"
    watch.take(reading(running=1.0))
    assert (watch.state(), watch.age_s(), watch.failure) == ("live", 0, None)


def test_start_up_scrape_is_missing() -> None:
    assert watched(Reading(0.0, "prometheus")).state() == "missing"


def test_requests_that_run_without_a_counter_moving_are_suspect() -> None:
    stuck = [reading(running=3.0, generation_tokens=50.0)] * 6
    assert watched(*stuck[:5]).suspect() is None, "not before enough readings"
    assert "3 requests are said to run" in (watched(*stuck).suspect() or "")
    assert watched(*stuck, reading(running=3.0, generation_tokens=51.0)).suspect() is None


@pytest.mark.parametrize(
    "fields", [{"running": 0.0, "generation_tokens": 50.0}, {"running": 3.0}, {"generation_tokens": 50.0}]
)
def test_idle_or_silent_sources_are_not_suspect(fields: dict[str, float]) -> None:
    assert watched(*[reading(**fields)] * 9).suspect() is None


def test_usage_that_stays_while_tokens_fill_blocks_is_suspect() -> None:
    same = {"running": 2.0, "waiting": 1.0, "kv_used_fraction": 0.25}
    frozen = [reading(generation_tokens=100.0 * k, **same) for k in range(8)]
    assert "stayed at 0.25" in (watched(*frozen).suspect() or "")
    slow = [reading(generation_tokens=5.0 * k, **same) for k in range(8)]
    assert watched(*slow).suspect() is None, "too few tokens to fill a block"
    moving = [reading(generation_tokens=100.0 * k, kv_used_fraction=0.2 + k / 100, running=2.0) for k in range(8)]
    assert watched(*moving).suspect() is None


def test_restarted_engine_begins_anew() -> None:
    stuck = [reading(running=3.0, generation_tokens=50.0)] * 6
    assert watched(*stuck, reading(running=3.0, generation_tokens=0.0)).suspect() is None
