"""Every error a user can meet, drawn on top.

HeadwayError
├── InputError            bad input: what, where, what was accepted (exit code 2)
│   ├── TraceError        a trace file, its line and the value
│   ├── FleetError        a fleet file or a built-in fleet
│   ├── CatalogueError    a GPU, a model or a pair without a profile
│   └── SettingError      a setting out of its bounds
├── LeaseHeldError        another engine drives this store
└── StoreError            the store cannot be opened or is of a newer version
    └── StoreBusyError    locked by another process, or the disk is full; trying again may help
"""

from typing import Any


class HeadwayError(Exception):
    """Base of all errors that are shown to a user as one line."""

    exit_code = 1


class InputError(HeadwayError):
    """Bad input. The message names what, where and what would have been accepted."""

    exit_code = 2


class TraceError(InputError):
    """A trace cannot be read: names the file, the line and the value."""

    def __init__(self, path: str, line: int | None, what: str) -> None:
        where = f"{path}:{line}" if line is not None else path
        super().__init__(f"{where}: {what}")
        self.path, self.line, self.what = path, line, what


class FleetError(InputError):
    """A fleet description is wrong: names the file, the key and the value."""


class CatalogueError(InputError):
    """A GPU, a model or a pair of them is not in the hardware catalogue."""


class SettingError(InputError):
    """A setting is unknown or out of bounds."""


class LeaseHeldError(HeadwayError):
    """Another live engine holds the lease of this store."""

    exit_code = 3


class StoreError(HeadwayError):
    """The store cannot be opened, or was written by a newer Headway."""

    exit_code = 4


class StoreBusyError(StoreError):
    """Another process held the store's write lock for too long, or the disk is full; nothing was written."""


def shown(value: Any, most: int = 60) -> str:
    """`value` as a message shows it, in one line of at most `most` characters, however large or deep it is."""
    try:
        return f"{value!r:.{most}}"
    except (ValueError, RecursionError, OverflowError):
        return f"{type(value).__name__} too large to show"


def one_line(error: BaseException, most: int = 200) -> str:
    """The class of an error and its message, in one line that can be stored, whatever the message holds."""
    line = " ".join(str(error).split())[:most].encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
