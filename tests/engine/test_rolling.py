"""Live figures against numbers worked out by hand."""

import pytest

from control.engine.rolling import Ended, Meter, Rolling


@pytest.fixture
def four_ended() -> Rolling:
    """Four workflows within 100 s: latencies 10, 20, 30 s done, one broken."""
    rolling = Rolling(window_s=100.0)
    rolling.note(Ended(10.0, 10.0, True, True))
    rolling.note(Ended(40.0, 20.0, True, True))
    rolling.note(Ended(60.0, 5.0, False, False))
    rolling.note(Ended(90.0, 30.0, False, True))
    return rolling


def test_percentiles_attainment_and_throughput(four_ended: Rolling) -> None:
    assert four_ended.percentile_s(50) == 20.0
    assert four_ended.percentile_s(95) == pytest.approx(29.0)
    assert four_ended.attainment() == 0.5
    assert four_ended.throughput_wps(90.0) == pytest.approx(3 / 90)
    assert four_ended.throughput_wps(200.0) == pytest.approx(3 / 100)
    assert (four_ended.completed, four_ended.failed) == (3, 1)


def test_what_left_the_window_no_longer_counts(four_ended: Rolling) -> None:
    four_ended.read(Meter(141.0, 0.0, 0, 0))
    assert four_ended.percentile_s(50) == 30.0
    assert four_ended.attainment() == 0.0
    assert four_ended.throughput_wps(141.0) == pytest.approx(1 / 100)
    assert four_ended.completed == 3


def test_rates_between_the_ends_of_the_window() -> None:
    rolling = Rolling(window_s=100.0)
    for at_s, energy_j, generated, context in (
        (0, 0, 0, 0),
        (50, 5e3, 1e3, 1e4),
        (100, 2e4, 4e3, 5e4),
        (160, 5e4, 9e3, 9e4),
    ):
        rolling.read(Meter(float(at_s), energy_j, int(generated), int(context)))
    assert rolling.tokens_per_s() == pytest.approx((9e3 - 1e3) / 110.0)
    assert rolling.tokens_per_joule() == pytest.approx((9e4 - 1e4) / (5e4 - 5e3))


def test_nothing_yet_is_not_a_number() -> None:
    rolling = Rolling()
    assert rolling.percentile_s(95) is None
    assert rolling.attainment() is None
    assert rolling.tokens_per_joule() is None
    assert rolling.tokens_per_s() == 0.0
    assert rolling.throughput_wps(0.0) == 0.0


def test_a_long_pause_costs_no_memory() -> None:
    rolling = Rolling()
    for _ in range(1000):
        rolling.read(Meter(10.0, 5.0, 1, 1))
    assert len(rolling.meters) == 1
