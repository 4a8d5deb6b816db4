"""Checked access to the fields of a calibrated profile's file."""

import math
import re
from typing import Any

from control.errors import CatalogueError
from control.model.profile import Curve

#: What a GPU may be called: instances are named after it.
LABEL = re.compile(r"[A-Za-z0-9._-]{1,32}")
MOST = 2**31 - 1


class Fields:
    """One object of the file. Every getter raises CatalogueError: the file, the key, the value, what is accepted."""

    def __init__(self, where: str, raw: Any) -> None:
        """Wrap `raw`, found at `where`."""
        if not isinstance(raw, dict):
            raise CatalogueError(f"{where}: {raw!r:.60}: a JSON object is accepted")
        self.where, self.raw = where, raw

    def table(self, key: str, default: dict[str, Any] | None = None) -> "Fields":
        """The object under `key`."""
        return Fields(f"{self.where}: {key}", self._given(key) if default is None else self.raw.get(key, default))

    def text(self, key: str, pattern: re.Pattern[str] | None = None, default: str | None = None) -> str:
        """A string that matches `pattern`; without a default it must not be empty."""
        value = self._given(key) if default is None else self.raw.get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise CatalogueError(f"{self.where}: {key} = {value!r:.60}: a non-empty string is accepted")
        if pattern and not pattern.fullmatch(value):
            raise CatalogueError(f"{self.where}: {key} = {value!r:.60}: 1 to 32 letters, digits, '.', '_' or '-'")
        return value

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 on."""
        value = self._given(key) if default is None else self.raw.get(key, default)
        if type(value) is not int or not 1 <= value <= MOST:
            raise CatalogueError(f"{self.where}: {key} = {value!r:.60}: a whole number from 1 is accepted")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number from 0 on."""
        value = self._given(key) if default is None else self.raw.get(key, default)
        if not _finite(value):
            raise CatalogueError(f"{self.where}: {key} = {value!r:.60}: a finite number from 0 is accepted")
        return float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Two or more finite numbers from 0 on, none below the one before it."""
        values = self._given(key)
        right = isinstance(values, list) and len(values) >= 2 and all(_finite(value) for value in values)
        if not right or sorted(values) != values:
            raise CatalogueError(f"{self.where}: {key} = {values!r:.60}: two or more ascending numbers are accepted")
        return tuple(float(value) for value in values)

    def _given(self, key: str) -> Any:
        if key not in self.raw:
            raise CatalogueError(f"{self.where}: {key} is missing")
        return self.raw[key]


def _finite(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0.0  # type: ignore[arg-type, operator]


def read_curve(table: Fields, base: str, slope: str) -> Curve:
    """The curve of a table: `knots` and `ms` where it has them, else the line from `base` with `slope`."""
    if "knots" not in table.raw:
        start_ms, slope_ms = table.number(base), table.number(slope)
        return Curve((0.0, 1.0), (start_ms, start_ms + slope_ms))
    x, y = table.numbers("knots"), table.numbers("ms")
    if len(x) != len(y) or x[0] != 0.0 or len(set(x)) != len(x):
        raise CatalogueError(f"{table.where}: knots: as many as there are ms, from 0, each once")
    return Curve(x, y)


def curve_fields(curve: Curve, base: str, slope: str) -> dict[str, Any]:
    """The fields that read_curve reads."""
    if len(curve.x) == 2:
        return {base: curve.y[0], slope: (curve.y[1] - curve.y[0]) / (curve.x[1] - curve.x[0])}
    return {"knots": list(curve.x), "ms": list(curve.y)}
