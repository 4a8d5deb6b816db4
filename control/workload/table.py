"""A CSV trace as columns of text that turn into checked numbers, with the line of every row."""

import csv
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from control.errors import TraceError
from control.workload.text import first_line

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Largest token count or position a trace may hold; anything above is a slip in the file.
MOST = 1_000_000_000

_CHUNK_ROWS = 500


class Table(NamedTuple):
    """Columns of a CSV file, all of one length."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int]  # 1-based line of each row in the file

    def refuse(self, row: int, name: str, accepted: str) -> NoReturn:
        """Raise TraceError that names the line, the column, its value and what would have been accepted."""
        value = self.columns[name][row]
        raise TraceError(self.path, self.lines[row], f"{name} = {value!r}: expected {accepted}")

    def whole(self, name: str, low: int = 0, high: int = MOST) -> Ints:
        """A column of whole numbers from `low` to `high`. Raises TraceError on the first other value."""
        texts = self.columns[name]
        try:
            values = np.array(list(map(int, _plain(texts))), dtype=np.int64)
        except (ValueError, OverflowError):
            self._refuse_first(name, _is_whole, f"a whole number >= {low}")
        self._check(name, values < low, f"a whole number >= {low}")
        self._check(name, values > high, f"a whole number <= {high}")
        return values

    def real(self, name: str, low: float = 0.0, blank: float | None = None) -> Floats:
        """A column of finite numbers >= `low`; an empty cell counts as `blank`, where that is given."""
        texts = self.columns[name]
        if blank is not None:
            texts = [text or repr(blank) for text in texts]
        try:
            values = np.array(list(map(float, _plain(texts))), dtype=np.float64)
        except ValueError:
            self._refuse_first(name, _is_real(blank), f"a number >= {low:g}")
        self._check(name, ~np.isfinite(values) | (values < low), f"a finite number >= {low:g}")
        return values

    def label(self, name: str) -> list[str]:
        """A column of names, stripped. Raises TraceError on an empty one."""
        values = [text.strip() for text in self.columns[name]]
        if "" in values:
            self.refuse(values.index(""), name, "a name")
        return values

    def _check(self, name: str, bad: npt.NDArray[np.bool_], accepted: str) -> None:
        if bad.any():
            self.refuse(int(bad.argmax()), name, accepted)

    def _refuse_first(self, name: str, accepts: Callable[[str], bool], accepted: str) -> NoReturn:
        self.refuse(next(i for i, text in enumerate(self.columns[name]) if not accepts(text)), name, accepted)


def _plain(texts: list[str]) -> list[str]:
    """`texts` without Python's own liberties: raises ValueError on 1_000 and on digits beyond ASCII."""
    joined = "".join(texts)
    if "_" in joined or not joined.isascii():
        raise ValueError(joined[:40])
    return texts


def _is_whole(text: str) -> bool:
    try:
        return abs(int(*_plain([text]))) < 2**63
    except ValueError:
        return False


def _is_real(blank: float | None) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        try:
            float(*_plain([text or repr(blank)]))
        except ValueError:
            return False
        return True

    return accepts


def header_of(text: str) -> tuple[str, ...]:
    """The column names in the first line that is not blank."""
    return tuple(name.strip().strip('"') for name in first_line(text)[1].split(","))


def read_table(path: str, text: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> Table:
    """The `needed` and `optional` columns of the rows under the header; blank lines are skipped.

    Raises TraceError: a column that is missing or there twice, a row of another length, no row at all.
    """
    header = header_of(text)
    _check_header(path, first_line(text)[0], header, needed)
    columns: dict[str, list[str]] = {name: [] for name in header if name in needed + optional}
    lines: list[int] = []
    for rows, at in _chunks(path, text, len(header)):
        for name, cells in zip(header, zip(*rows, strict=True), strict=True):
            if name in columns:
                columns[name].extend(cells)
        lines.extend(at)
    if not lines:
        raise TraceError(path, None, "no row under the header: expected at least one")
    return Table(path, columns, lines)


def _check_header(path: str, line: int, header: tuple[str, ...], needed: tuple[str, ...]) -> None:
    for name in needed:
        if name not in header:
            raise TraceError(path, line, f"column {name} is missing: expected {', '.join(needed)}")
    for name in header:
        if header.count(name) > 1:
            raise TraceError(path, line, f"column {name!r} is there twice: expected each name once")


def _chunks(path: str, text: str, width: int) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Rows and their lines, a few hundred at a time: 500 read a million rows in 1.6 s, 10,000 in 7.3 s."""
    reader = csv.reader(text.split("\n"), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    under_header = False
    done = 0  # lines of the rows read so far
    try:
        for row in reader:
            if not under_header:
                under_header = any(cell.strip() for cell in row)
            elif len(row) == width:
                rows.append(row)
                lines.append(done + 1)
            elif any(cell.strip() for cell in row):
                raise TraceError(path, done + 1, f"{len(row)} columns: expected {width}")
            done = reader.line_num
            if len(rows) >= _CHUNK_ROWS:
                yield rows, lines
                rows, lines = [], []
    except csv.Error as error:
        raise TraceError(path, done + 1, f"{error}: expected CSV") from error
    if rows:
        yield rows, lines
