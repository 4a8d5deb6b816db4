"""Numbers as an operator reads them: three significant digits, a unit, a true minus, no raw floats."""

import math

#: What stands where there is no number yet.
NOTHING = "–"
MINUS = "−"

_ROUNDS_UP = 0.9995  # of a step, from which three digits say it
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float | None, digits: int = 3) -> str:
    """`value` with `digits` significant digits; whole numbers keep all digits up to 9,999.

    None, nan and infinities give a dash.
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == int(value) and abs(value) < 10_000:
        return _minus(f"{int(value):,}")
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return _minus(f"{rounded:,.{decimals}f}")


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things, e.g. "1 seed" and "8 seeds"; `plural`: of a noun that takes no bare s."""
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"


def quantity(value: float | None, unit: str) -> str:
    """`value` in `unit` with an SI prefix from 1,000 on, e.g. 31300 W -> "31.3 kW".

    Seconds turn into ms, s, min or h; "%" takes a share between 0 and 1.
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if unit == "s":
        return seconds(value)
    if unit == "%":
        return f"{number(value * 100)} %"
    for step, prefix in _STEPS:
        if abs(value) >= _ROUNDS_UP * step:
            space = " " if len(unit) > 2 else ""
            return f"{number(value / step)} {prefix}{space}{unit}"
    return f"{number(value)} {unit}"


def seconds(value: float) -> str:
    """A duration given in s, in the unit that keeps it between 1 and 1,000."""
    size = abs(value)
    if size and size < _ROUNDS_UP:
        return f"{number(value * 1e3)} ms"
    if size < 6000:
        return f"{number(value)} s"
    if size < 36_000:
        return f"{number(value / 60)} min"
    return f"{number(value / 3600)} h"


def significant(value: float | None, digits: int = 4) -> float | int | None:
    """`value` cut to `digits` significant digits for the wire; whole numbers become int, nan None."""
    if value is None or not math.isfinite(value):
        return None
    if value == int(value) and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.{digits}g}")


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
