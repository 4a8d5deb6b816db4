"""Any text with metrics of engines or GPUs as a Reading; its kind is recognised by its content."""

import codecs
import re
import time
from dataclasses import replace
from pathlib import Path

from control.adapters.exposition import Samples, parse_samples
from control.adapters.faults import MetricsError
from control.adapters.gpu_text import dialect_of, read_gpus
from control.adapters.metric_text import engine_of, read_engine
from control.adapters.reading import Reading, total_power_w
from control.adapters.series import is_series, read_series
from control.adapters.smi_text import read_smi

#: Longest text that is read; a busy server's is a few hundred kB.
MOST_BYTES = 32 * 2**20
SERVER = re.compile(r"^[^/\\]+:\d+(/|$)")
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PROMETHEUS_COMMENT = re.compile(r"^# (?:HELP|TYPE) \S+ ", re.MULTILINE)


def read_text(text: str, where: str, taken_s: float | None = None, in_percent: bool = False) -> Reading:
    """The reading a text gives: Prometheus text of an engine or an exporter, nvidia-smi's output, or a series.

    Args:
        text: the text.
        where: its file or URL, for messages.
        taken_s: Unix time at which it was read; now where absent.
        in_percent: the source is known to give the KV usage as 0-100.

    Raises:
        MetricsError: it is none of these.
    """
    taken_s = time.time() if taken_s is None else taken_s
    if not PROMETHEUS_COMMENT.search(text):
        if is_series(text):
            return read_series(text, where, taken_s)
        smi = read_smi(text, where)
        if smi is not None:
            return Reading(taken_s, smi.source, gpus=smi.gpus, power_w=total_power_w(smi.gpus))
    return read_samples(parse_samples(text, where), taken_s, in_percent)


def read_samples(samples: Samples, taken_s: float, in_percent: bool = False) -> Reading:
    """The reading of a Prometheus text: an engine, GPUs, or both where one page carries both."""
    reading = read_engine(samples, taken_s, in_percent)
    dialect = dialect_of(samples)
    if dialect is None:
        return reading
    gpus = read_gpus(samples, dialect)
    source = reading.source if engine_of(samples) else dialect.source
    return replace(reading, source=source, gpus=gpus, power_w=total_power_w(gpus))


def read_file(path: str) -> Reading:
    """The reading a file gives.

    Raises:
        MetricsError: it cannot be read, or is of no known kind.
    """
    try:
        size = Path(path).stat().st_size
        content = Path(path).read_bytes() if size <= MOST_BYTES else b""
    except FileNotFoundError as error:
        hint = ": a server is named with http://" if SERVER.match(path) else " or directory"
        raise MetricsError(path, f"no such file{hint}") from error
    except OSError as error:
        raise MetricsError(path, (error.strerror or str(error)).lower()) from error
    if size > MOST_BYTES:
        raise MetricsError(path, f"{size:,} bytes: expected at most {MOST_BYTES:,}")
    return read_text(decoded(content, path), path)


def decoded(content: bytes, where: str) -> str:
    """Bytes as text: UTF-8, or what a Windows shell writes to a file.

    Raises:
        MetricsError: they are empty or neither.
    """
    encoding = "utf-16" if content.startswith(UTF_16_MARKS) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise MetricsError(
            where, f"byte {error.start + 1} is no {encoding.removesuffix('-sig').upper()} text"
        ) from error
    if not text.strip():
        raise MetricsError(where, "the text is empty: expected a metrics text")
    return text
