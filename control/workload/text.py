"""Text files as they come: byte order marks and both line ends are fine, binary data is refused."""

from pathlib import Path

from control.errors import TraceError


def read_text(path: str) -> str:
    """The whole file as text with `\\n` line ends; an UTF-8 byte order mark is dropped.

    Raises TraceError: no such file, not readable, empty, or not UTF-8 text.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise TraceError(path, None, f"{reason}: expected a readable trace file") from error
    text = _decode(path, data)
    if not text.strip():
        raise TraceError(path, None, "the file is empty: expected a header or a JSON object in line 1")
    return text.replace("\r\n", "\n")


def first_line(text: str) -> tuple[int, str]:
    """(1-based number, text) of the first line that is not blank."""
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", start)
    return text.count("\n", 0, start) + 1, text[start : end if end >= 0 else len(text)]


def _decode(path: str, data: bytes) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        raise TraceError(path, _line_at(data, nul), "binary data (a NUL byte): expected UTF-8 text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"binary data (byte 0x{data[error.start]:02x}): expected UTF-8 text"
        raise TraceError(path, _line_at(data, error.start), what) from error


def _line_at(data: bytes, offset: int) -> int:
    """1-based number of the line that holds the byte at `offset`."""
    return data.count(b"\n", 0, offset) + 1
