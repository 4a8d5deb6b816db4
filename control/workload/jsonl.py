"""JSON lines, one object a line, with strict fields: no twice-given keys, no NaN, no wrong types."""

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from control.errors import TraceError
from control.workload.table import MOST

Fields = dict[str, Any]


class _BadJsonError(ValueError):
    """What a strict JSON hook refuses."""


def objects(path: str, text: str) -> Iterator[tuple[int, Fields]]:
    """(line, object) of every line that is not blank. Raises TraceError on anything but one object a line."""
    for line, row in enumerate(text.split("\n"), start=1):
        if row and not row.isspace():
            yield line, parse(path, line, row)


def parse(path: str, line: int, row: str) -> Fields:
    """The JSON object in `row`. Raises TraceError."""
    try:
        value = _DECODER.decode(row)
    except _BadJsonError as error:
        raise TraceError(path, line, str(error)) from error
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too long a number"
        raise TraceError(path, line, f"not JSON ({what.lower()}): expected one object a line") from error
    if not isinstance(value, dict):
        raise TraceError(path, line, f"{shorten(value)}: expected a JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> Fields:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _BadJsonError(f"key {twice!r} is there twice: expected each key once")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise _BadJsonError(f"{name}: expected a finite number")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


def whole(path: str, line: int, fields: Fields, name: str, low: int, high: int = MOST) -> int:
    """`fields[name]`, a whole number from `low` to `high`. Raises TraceError."""
    value = _given(path, line, fields, name)
    if type(value) is not int or value < low:
        raise TraceError(path, line, f"{name} = {shorten(value)}: expected a whole number >= {low}")
    if value > high:
        raise TraceError(path, line, f"{name} = {shorten(value)}: expected a whole number <= {high}")
    return value


def real(path: str, line: int, fields: Fields, name: str, low: float, above: bool = False) -> float:
    """`fields[name]`, a finite number >= `low` (> `low` where `above`). Raises TraceError."""
    value = _given(path, line, fields, name)
    right = type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)
    if not right or value < low or (above and value == low):
        sign = ">" if above else ">="
        raise TraceError(path, line, f"{name} = {shorten(value)}: expected a finite number {sign} {low:g}")
    return float(value)


def label(path: str, line: int, fields: Fields, name: str) -> str:
    """`fields[name]`, a non-empty string. Raises TraceError."""
    value = _given(path, line, fields, name)
    if not isinstance(value, str) or not value.strip():
        raise TraceError(path, line, f"{name} = {shorten(value)}: expected a name in quotes")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise TraceError(path, line, f"{name} = {shorten(value)}: expected whole characters, not half of a pair")
    return value


def only(path: str, line: int, fields: Fields, where: str, known: tuple[str, ...]) -> None:
    """Refuse by name a key that is not `known`. Raises TraceError."""
    for name in fields:
        if name not in known:
            what = f"unknown key {name!r} in {where}: expected {', '.join(known)}"
            raise TraceError(path, line, what)


def _given(path: str, line: int, fields: Fields, name: str) -> Any:
    if name not in fields:
        raise TraceError(path, line, f"{name} is missing: expected it in every line")
    return fields[name]


def shorten(value: object) -> str:
    """`value` as it would be written, cut to one short piece."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
