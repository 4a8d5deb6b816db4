"""The known trace formats: what their headers hold, and who reads them."""

from collections.abc import Callable
from typing import NamedTuple

from control.errors import TraceError
from control.model.workload import Workload
from control.workload import azure, coding, conserve, hexgen, jsonl, mooncake, turns
from control.workload.own import read_own
from control.workload.table import header_of
from control.workload.text import first_line


class Format(NamedTuple):
    """A trace format: recognised by the names in its header (CSV) or first object (JSON lines)."""

    name: str
    json_lines: bool
    names: tuple[str, ...]  # all of them are in the header
    read: Callable[[str, str], Workload]  # (path, text) -> Workload


FORMATS = (
    Format("azure", False, azure.COLUMNS, azure.read_azure),
    Format("mooncake", True, mooncake.COLUMNS, mooncake.read_mooncake),
    Format("hexgen", False, hexgen.COLUMNS, hexgen.read_hexgen),
    Format("conserve", False, conserve.COLUMNS, conserve.read_conserve),
    Format("agents", False, coding.COLUMNS, coding.read_coding),
    Format("lmcache", False, turns.LMCACHE_COLUMNS, turns.read_lmcache),
    Format("tau", False, turns.TAU_COLUMNS, turns.read_tau),
    Format("headway", True, ("calls",), read_own),
)


def format_names() -> tuple[str, ...]:
    """Names that `--format` accepts."""
    return tuple(known.name for known in FORMATS)


def detect(path: str, text: str) -> Format:
    """The format whose names are all in the header. Raises TraceError that lists the known formats."""
    line, row = first_line(text)
    json_lines = row.lstrip().startswith("{")
    header = tuple(jsonl.parse(path, line, row)) if json_lines else header_of(row)
    for known in FORMATS:
        if known.json_lines == json_lines and set(known.names) <= set(header):
            return known
    shown = jsonl.shorten(",".join(header))
    raise TraceError(path, line, f"header {shown} is of no known format: expected {_known(json_lines)}")


def _known(json_lines: bool) -> str:
    likely = [f"{k.name} ({','.join(k.names)})" for k in FORMATS if k.json_lines == json_lines]
    others = [k.name for k in FORMATS if k.json_lines != json_lines]
    return f"{'; '.join(likely)}; or {'JSON' if not json_lines else 'CSV'} of {', '.join(others)}"
