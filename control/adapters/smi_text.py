"""What nvidia-smi prints: query CSV, dmon, the log of -q and the default table. The latest row of each GPU counts."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from control.adapters.faults import MetricsError
from control.adapters.gpu_names import DMON_COLUMNS, SMI_COLUMNS, SMI_LOG
from control.adapters.names import Quantity
from control.adapters.reading import GpuReading

NUMBER = re.compile(r"^([-+]?\d+(?:\.\d+)?)\s*(?:W|MiB|MB|%|C)?$")
TABLE_HEAD = re.compile(r"^\|\s+(\d+)\s{2,}(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|")
TABLE_BODY = re.compile(
    r"^\|\s*(?:N/A|\d+%|ERR!)\s+(?P<temp>\S+?)C?\s+\S+\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)\s*"
    r"\|\s*(?P<used>\S+)\s*/\s*(?P<total>\S+)\s*\|\s*(?P<load>\S+)"
)
LOG_GPU = re.compile(r"^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:")
LOG_LINE = re.compile(r"^(\s+)(\S[^:]*?)\s*(?::\s(.*))?$")

Gpus = dict[str, GpuReading]


class SmiText(NamedTuple):
    """GPUs, and what kind of nvidia-smi output they were read from."""

    source: str
    gpus: tuple[GpuReading, ...]


def read_smi(text: str, where: str) -> SmiText | None:
    """The GPUs of what nvidia-smi printed, from the most telling part of it; None where it holds no such part.

    Raises:
        MetricsError: a row of a table does not fit its header.
    """
    lines = text.splitlines()
    for source, read in READERS.items():
        gpus = read(lines, where)
        if gpus:
            return SmiText(source, tuple(gpus.values()))
    return None


def value(cell: str | None) -> float | None:
    """The number in a cell such as "70.12 W", "12 %" or "-"; None for [N/A] and its like."""
    match = NUMBER.match((cell or "").strip())
    return float(match[1]) if match else None


def figures(quantities: Iterable[Quantity], cell: Callable[[str], str | None]) -> dict[str, Any]:
    """All figures of a GPU: of each quantity the first name whose cell holds a number."""
    found: dict[str, Any] = {}
    for quantity in quantities:
        for name in quantity.names:
            number = value(cell(name.name))
            if number is not None:
                found[quantity.field] = number * name.scale
                break
    return found


def whole(cell: str | None) -> int | None:
    """A GPU's number; None where the cell holds none."""
    text = (cell or "").strip()
    return int(text) if text.isdigit() else None


def read_query(lines: list[str], where: str) -> Gpus:
    """`--query-gpu=... --format=csv`: a header with units in brackets, a row a GPU, cells with or without units."""
    gpus: Gpus = {}
    header: list[str] = []
    for number, line in enumerate(lines, 1):
        cells = split(line)
        if is_query_header(line, cells):
            header = cells
        elif not cells:
            header = []
        elif header:
            if len(cells) != len(header):
                raise MetricsError(f"{where}:{number}", f"{len(cells)} cells: expected {len(header)} as in the header")
            row = dict(zip(header, cells, strict=True))
            key = row.get("index") or row.get("uuid") or row.get("pci.bus_id") or "0"
            uuid, name = known(row.get("uuid")), known(row.get("name"))
            gpus[key] = GpuReading(whole(row.get("index")), uuid, name, **figures(SMI_COLUMNS, row.get))
    return gpus


def split(line: str) -> list[str]:
    """Cells of a CSV line, names of columns without their unit; none of a comment."""
    if line.startswith("#") or not line.strip():
        return []
    cells = next(csv.reader([line], skipinitialspace=True))
    return [re.sub(r"\s*\[(W|MiB|%|MHz|us|ms|s)\]$", "", cell.strip()) for cell in cells]


def is_query_header(line: str, cells: list[str]) -> bool:
    """Whether a line names columns of --query-gpu that hold what we read; its help names them in quotes."""
    columns = {name.name for quantity in SMI_COLUMNS for name in quantity.names}
    return '"' not in line and (len(cells) > 1 or "[" in line) and bool(columns & set(cells))


def known(cell: str | None) -> str | None:
    """A text that says something."""
    return None if cell is None or cell.strip("[] ") in ("", "N/A", "Not Supported") else cell


def read_dmon(lines: list[str], where: str) -> Gpus:
    """`dmon`: a header, a second one with units, then a row a GPU and second, split by blanks or commas."""
    gpus: Gpus = {}
    header: list[str] = []
    for number, line in enumerate(lines, 1):
        cells = [cell for cell in re.split(r"[,\s]+", line.strip().lstrip("#")) if cell]
        if {"gpu", "pwr"} <= set(cells):
            header = cells
        elif not cells or (line.startswith("#") and "Idx" not in cells):
            header = []
        elif header and "Idx" not in cells:
            if len(cells) != len(header):
                raise MetricsError(f"{where}:{number}", f"{len(cells)} cells: expected {len(header)} as in the header")
            row = dict(zip(header, cells, strict=True))
            gpus[row["gpu"]] = GpuReading(whole(row["gpu"]), **figures(DMON_COLUMNS, row.get))
    return gpus


def read_log(lines: list[str], where: str) -> Gpus:
    """The log of `-q`: sections by indentation under a line that names the GPU by its bus."""
    gpus: Gpus = {}
    for block in log_blocks(lines):
        entries = dict(log_entries(block[1:]))
        uuid, name = entries.get("gpu uuid"), entries.get("product name")
        gpus[block[0]] = GpuReading(None, known(uuid), known(name), **figures(SMI_LOG, entries.get))
    return {bus: replace(gpu, index=index) for index, (bus, gpu) in enumerate(sorted(gpus.items()))}


def log_blocks(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each GPU, its own line first."""
    block: list[str] = []
    for line in lines:
        if LOG_GPU.match(line):
            if block:
                yield block
            block = [line.strip()]
        elif block and line.startswith(" "):
            block.append(line)
        elif block and line.strip():
            yield block
            block = []
    if block:
        yield block


def log_entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Entries of one GPU as ("section/key", value), or ("key", value) outside a section, in lower case."""
    section = ""
    for line in lines:
        match = LOG_LINE.match(line)
        if match is None:
            continue
        depth, key, said = len(match[1]), match[2].strip().lower(), match[3]
        if depth <= 4:
            section = key if said is None else ""
        if said is not None:
            yield (f"{section}/{key}" if section else key), said.strip()


def read_table(lines: list[str], where: str) -> Gpus:
    """The table that nvidia-smi prints without options: two lines a GPU."""
    gpus: Gpus = {}
    head: re.Match[str] | None = None
    for line in lines:
        body = TABLE_BODY.match(line)
        if body and head:
            gpus[head[1]] = GpuReading(
                index=int(head[1]),
                name=head[2].strip(),
                power_w=value(body["power"]),
                power_limit_w=value(body["limit"]),
                utilization=None if (load := value(body["load"])) is None else load / 100,
                memory_used_mib=value(body["used"]),
                memory_total_mib=value(body["total"]),
                temperature_c=value(body["temp"]),
            )
        head = TABLE_HEAD.match(line)
    return gpus


#: The most telling kind first.
READERS: dict[str, Callable[[list[str], str], Gpus]] = {
    "nvidia-smi --query-gpu": read_query,
    "nvidia-smi -q": read_log,
    "nvidia-smi": read_table,
    "nvidia-smi dmon": read_dmon,
}
