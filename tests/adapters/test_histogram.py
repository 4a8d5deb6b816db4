"""Histograms with any bounds: means, quantiles, and what came between two scrapes."""

import math

import pytest

from control.adapters.histogram import Histogram, merged

INF = math.inf
TEN = Histogram(10, 20.0, ((1.0, 2.0), (3.0, 8.0), (7.5, 8.0), (INF, 10.0)))


def test_quantile_is_linear_within_its_bucket() -> None:
    assert TEN.quantile_s(0.1) == pytest.approx(0.5)
    assert TEN.quantile_s(0.5) == pytest.approx(1 + 2 * 3 / 6)
    assert TEN.quantile_s(0.8) == pytest.approx(3.0)


def test_open_bucket_gives_its_lower_bound_and_says_so() -> None:
    assert TEN.quantile_s(0.95) == 7.5
    assert TEN.is_open(0.95)
    assert not TEN.is_open(0.8)


def test_nothing_counted_has_no_mean_and_no_quantile() -> None:
    empty = Histogram(0, 0.0, ((1.0, 0.0), (INF, 0.0)))
    assert (empty.mean_s(), empty.quantile_s(0.5)) == (None, None)
    assert (Histogram(3, None).mean_s(), Histogram(3, None).quantile_s(0.5)) == (None, None)


def test_difference_of_two_scrapes_is_what_came_between() -> None:
    later = Histogram(14, 60.0, ((1.0, 2.0), (3.0, 8.0), (7.5, 8.0), (INF, 14.0)))
    between = later.since(TEN)
    assert (between.count, between.mean_s(), between.is_open(0.5)) == (4, 10.0, True)
    assert TEN.since(later) == TEN, "after a restart all of it is new"
    assert TEN.since(Histogram(1, 1.0, ((1.0, 1.0), (INF, 1.0)))) == TEN, "other buckets cannot be subtracted"
    assert TEN.since(None) == TEN


def test_ranks_with_other_bounds_share_those_they_both_have() -> None:
    other = Histogram(4, 4.0, ((1.0, 4.0), (2.0, 4.0), (INF, 4.0)))
    both = merged([TEN, other])
    assert both is not None
    assert (both.count, both.sum_s, both.buckets) == (14, 24.0, ((1.0, 6.0), (INF, 14.0)))
    assert merged([]) is None
