"""The recorded series of an engine that benchmark runs keep as CSV: a row a second, the last one is the latest."""

import csv
import io
import re

from control.adapters.faults import MetricsError
from control.adapters.metric_text import MOST_FRACTION
from control.adapters.names import SERIES, Quantity
from control.adapters.reading import Reading

TIME_COLUMN = re.compile(r"^(t|time)\s*(\[s\])?$")


def is_series(text: str) -> bool:
    """Whether the first line is the header of such a series."""
    header = header_of(text)
    named = {name.name for quantity in SERIES for name in quantity.names}
    return bool(header) and bool(TIME_COLUMN.match(header[0])) and len(named & plain(header)) >= 2


def header_of(text: str) -> list[str]:
    """Cells of the first line."""
    return [cell.strip() for cell in text.lstrip().partition("\n")[0].split(",")]


def plain(header: list[str]) -> set[str]:
    """Names of columns without `_total`."""
    return {name.removesuffix("_total") for name in header}


def read_series(text: str, where: str, taken_s: float) -> Reading:
    """The last row of a series.

    Raises:
        MetricsError: there is no row, or a cell that should be a number is none.
    """
    rows = [row for row in csv.DictReader(io.StringIO(text.lstrip()), skipinitialspace=True) if any(row.values())]
    if not rows:
        raise MetricsError(where, "a header without a row: expected at least one row")
    columns = {name.strip(): name for name in rows[0] if name}
    fields: dict[str, float | None] = {}
    percent = False
    for quantity in SERIES:
        column = column_of(quantity, set(columns))
        if column is None:
            continue
        name, scale = column
        fields[quantity.field] = number(rows[-1][columns[name]], where, len(rows) + 1, name) * scale
        if quantity.field == "kv_used_fraction":
            told = [number(row[columns[name]], where, line, name) for line, row in enumerate(rows, 2)]
            percent = scale != 1.0 or max(told) > MOST_FRACTION
            fields[quantity.field] = told[-1] / 100 if percent else told[-1]
    engine = "vllm" if "num_requests_running" in columns else None
    return Reading(taken_s, "engine series", engine=engine, kv_in_percent=percent, **fields)  # type: ignore[arg-type]


def column_of(quantity: Quantity, columns: set[str]) -> tuple[str, float] | None:
    """The column a quantity stands in and its scale; None where it has none."""
    for name in quantity.names:
        for spelling in (name.name, f"{name.name}_total"):
            if spelling in columns:
                return spelling, name.scale
    return None


def number(cell: str | None, where: str, line: int, column: str) -> float:
    """The number in a cell.

    Raises:
        MetricsError: it is none; names the line and the column.
    """
    try:
        return float(cell or "")
    except ValueError:
        raise MetricsError(f"{where}:{line}", f"{column} = {cell!r}: expected a number") from None
