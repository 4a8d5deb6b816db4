"""Read a trace file of any known format."""

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.detect import FORMATS, detect, format_names
from control.workload.text import read_text


def load_trace(path: str, format: str | None = None) -> Workload:
    """The workload in the file `path`; its format is recognised by the header unless `format` names it.

    Traces without arrival times come with arrival_s = nan: see `arrange`. What was legal but odd is mended
    and listed in `problems`. Raises TraceError with the line and what was expected, SettingError when
    `format` is unknown.
    """
    if format is None:
        text = read_text(path)
        return detect(path, text).read(path, text)
    for known in FORMATS:
        if known.name == format:
            return known.read(path, read_text(path))
    raise SettingError(f"format = {format!r}: expected one of {', '.join(format_names())}")
