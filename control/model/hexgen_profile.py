"""What a call costs in HexGen-Flow's simulator: seconds per (input, output) pair on its three kinds of GPU.

The authors' simulator looks every call up in a table of measured times (HexGen-Flow, section 7). A file gives that
table; without one the linear fits of section 1 stand in. Columns of all arrays: A100, A6000, L40S.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from control.errors import TraceError
from control.model.templates import STEP_HISTORY

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]  # input tokens, output tokens

GPUS: Final = ("A100", "A6000", "L40S")
COLUMNS: Final = ("input_tokens", "output_tokens", "a100_s", "a6000_s", "l40s_s")
LINEAR_FITS: Final = "linear fits"

#: Time of one decode iteration whatever the batch, s (section 7).
DECODE_S: Final = (0.035, 0.058, 0.0545)

#: k_e: weight of an instance's dispatched work in the artifact's score (section 1).
LOAD_WEIGHT: Final = (1.0, 0.5, 0.5)

#: Time of a call by tokens, s: intercept, per input token, per output token (section 1).
_FITS: Final = ((-0.032, 2.585e-5, 0.03908), (-0.104, 3.677e-5, 0.06049), (-0.132, 3.281e-5, 0.05631))

#: Published time of each step at its mean lengths, s (section 1).
_STEP_S: Final = {
    "information_retriever": (0.2472, 0.3144, 0.2844),
    "extract_keywords": (1.8235, 2.6706, 2.4602),
    "generate_candidate": (26.7528, 41.3072, 38.4261),
    "revise": (3.1794, 4.8172, 4.4442),
    "unit_tester": (0.2091, 0.2543, 0.2310),
    "generate_unit_test": (3.8959, 6.0725, 5.6427),
    "evaluate": (0.9992, 1.3238, 1.2188),
}


class PairTimes(NamedTuple):
    """Measured seconds by pair, or, with no pair in it, the linear fits."""

    source: str  # the file, or LINEAR_FITS
    pairs: dict[Pair, tuple[float, ...]]  # s on each of GPUS

    def call_s(self, pairs: Iterable[Pair]) -> Floats:
        """Seconds of each call, f8[calls, 3].

        Raises:
            TraceError: the file lacks a pair; names the first and how many are missing.
        """
        wanted = list(pairs)
        if self.source == LINEAR_FITS:
            return np.array([_fitted_s(*pair) for pair in wanted], np.float64).reshape(-1, len(GPUS))
        missing = sorted({pair for pair in wanted if pair not in self.pairs})
        if missing:
            more = f" (and {len(missing) - 1} more pairs of the trace)" if len(missing) > 1 else ""
            what = f"input_tokens = {missing[0][0]}, output_tokens = {missing[0][1]} is missing{more}"
            raise TraceError(self.source, None, f"{what}: expected a row for every pair of the trace")
        return np.array([self.pairs[pair] for pair in wanted], np.float64).reshape(-1, len(GPUS))

    def step_s(self, steps: Sequence[str]) -> Floats:
        """T of each step, f8[steps, 3]: the file's row at the step's mean pair, else the published time, s."""
        rows = [self.pairs.get(mean_pair(step), _STEP_S[step]) for step in steps]
        return np.array(rows, np.float64)


def mean_pair(step: str) -> Pair:
    """Mean input and output tokens of a step, as published."""
    history = STEP_HISTORY[step]
    return int(history.input_tokens), int(history.output_tokens)


def linear_fits() -> PairTimes:
    """The published fits, for traces whose pairs nobody measured."""
    return PairTimes(LINEAR_FITS, {})


def read_profile(path: str) -> PairTimes:
    """The table in the CSV file `path`, columns as in COLUMNS, other columns are not read.

    Raises:
        TraceError: not readable, a column missing, a value out of bounds, or a pair there twice.
    """
    pairs: dict[Pair, tuple[float, ...]] = {}
    for line, row in _rows(path):
        pair = (_tokens(path, line, row, COLUMNS[0]), _tokens(path, line, row, COLUMNS[1]))
        if pair in pairs:
            raise TraceError(path, line, f"pair {pair[0]}, {pair[1]} is there twice: expected each pair once")
        pairs[pair] = tuple(_seconds(path, line, row, name) for name in COLUMNS[2:])
    if not pairs:
        raise TraceError(path, None, "no row under the header: expected at least one")
    return PairTimes(path, pairs)


def _rows(path: str) -> list[tuple[int, dict[str, str]]]:
    """Lines and cells of the rows, every column of COLUMNS filled."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else "not UTF-8 text"
        raise TraceError(path, None, f"{reason.lower()}: expected a profile, a CSV file") from error
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    for name in COLUMNS:
        if name not in (reader.fieldnames or ()):
            raise TraceError(path, 1, f"column {name} is missing: expected {', '.join(COLUMNS)}")
    rows = [(reader.line_num, row) for row in reader]
    for line, row in rows:
        if None in row or None in row.values():
            raise TraceError(path, line, f"another number of cells: expected {len(reader.fieldnames or ())}")
    return rows


def _tokens(path: str, line: int, row: dict[str, str], name: str) -> int:
    """A cell as a count of tokens."""
    text = row[name].strip()
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise TraceError(path, line, f"{name} = {text!r}: expected a whole number >= 1")
    return int(text)


def _seconds(path: str, line: int, row: dict[str, str], name: str) -> float:
    """A cell as a time in s."""
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise TraceError(path, line, f"{name} = {row[name]!r}: expected seconds, a number > 0")
    return value


def _fitted_s(input_tokens: int, output_tokens: int) -> tuple[float, ...]:
    """Fitted seconds on each GPU; tiny calls, where a fit falls below their decode time, take that time."""
    return tuple(
        max(base + per_input * input_tokens + per_output * output_tokens, output_tokens * decode_s)
        for (base, per_input, per_output), decode_s in zip(_FITS, DECODE_S, strict=True)
    )
