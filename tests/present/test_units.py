"""A number on the screen has three significant digits, a unit and a true minus."""

import math

import pytest

from control.present.units import number, quantity, significant


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (7, "7"),
        (1234, "1,234"),
        (12.3456, "12.3"),
        (0.0123456, "0.0123"),
        (99.96, "100"),
        (123456.7, "123,000"),
        (-4.567, "−4.57"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_a_number_keeps_three_significant_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (31_300, "W", "31.3 kW"),
        (312, "W", "312 W"),
        (5321.4, "tokens/s", "5.32 k tokens/s"),
        (0.9954, "%", "99.5 %"),
        (0.0421, "s", "42.1 ms"),
        (12.34, "s", "12.3 s"),
        (7200, "s", "120 min"),
        (90_000, "s", "25 h"),
        (None, "s", "–"),
        (-2_500_000, "J", "−2.50 MJ"),
    ],
)
def test_a_quantity_carries_its_unit(value: float | None, unit: str, shown: str) -> None:
    assert quantity(value, unit) == shown


def test_the_wire_carries_four_significant_digits_and_no_nan() -> None:
    assert significant(0.123456) == 0.1235
    assert significant(12.0) == 12
    assert isinstance(significant(12.0), int)
    assert significant(math.nan) is None
    assert significant(None) is None
