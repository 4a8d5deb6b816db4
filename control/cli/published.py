"""What the subcommands of `headway reproduce` share: the trace, the profile, and options with several numbers."""

import click

from control.cli.options import together
from control.errors import SettingError
from control.model.hexgen_profile import PairTimes
from control.model.workload import Workload

#: Workflows of the generated trace that stands in for the authors' one.
GENERATED_WORKFLOWS = 90

source_options = together(
    click.option("--trace", "trace_path", help="Calls in order (CSV). Absent: a generated text-to-SQL trace."),
    click.option("--profile", "profile_path", help="Seconds per pair and GPU (CSV). Absent: the linear fits."),
)


def read_trace(path: str | None, seed: int) -> Workload:
    """The trace in `path`, or a generated one. Raises TraceError, SettingError."""
    from control.workload.load import load_trace
    from control.workload.text2sql import text2sql

    return load_trace(path) if path else text2sql(GENERATED_WORKFLOWS, seed)


def read_times(path: str | None) -> PairTimes:
    """The profile in `path`, or the linear fits. Raises TraceError."""
    from control.model.hexgen_profile import linear_fits, read_profile

    return read_profile(path) if path else linear_fits()


def numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas, each once. Raises SettingError."""
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values:
        raise SettingError(f"{option} = {text!r}: expected numbers separated by commas")
    return list(dict.fromkeys(values))
