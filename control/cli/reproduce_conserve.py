"""`headway reproduce conserve`: conversations on four GPUs under four policies, beside the paper's figures."""

import math
from typing import TYPE_CHECKING

import click

from control.cli.conserve_tables import show_conserve
from control.cli.options import answer, as_json, say_if_cold
from control.cli.published import numbers
from control.errors import SettingError
from control.model.workload import Workload

if TYPE_CHECKING:
    from control.tuning.conserve_setup import Caps

ERROR_STEP = 5.0  # per cent, of a range
MOST_TURNS = 1000
RATES = (1e-6, 1e6)  # conversations/s


@click.command("conserve")
@click.option("--trace", "trace_path", help="Conversations (CSV). Absent: generated ones of the same kind.")
@click.option(
    "--turns",
    type=int,
    default=5,
    show_default=True,
    help="Leading turns of each conversation.",
)
@click.option("--rates", default="0.5,0.75,1,1.25,1.5,1.634", show_default=True, help="Conversations per second.")
@click.option("--caps", default="300/300,300/200", show_default=True, help="W of the prefiller / of the decoders.")
@click.option(
    "--error", "errors", default="10", show_default=True, help="AMPD's wrong turns, %; several: 0..50 or 0,10."
)
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of all randomness.")
@click.option("--coding", "coding_path", help="Coding-agent requests (CSV): the same policies with think time.")
@as_json
def conserve(
    trace_path: str | None,
    turns: int,
    rates: str,
    caps: str,
    errors: str,
    seed: int,
    coding_path: str | None,
    json_out: bool,
) -> None:
    """ConServe: its policies by rate, power caps and injected error."""
    from control.tuning.conserve_setup import check_caps
    from control.tuning.reproduce_coding import read_coding_work, reproduce_coding
    from control.tuning.reproduce_conserve import Setup, reproduce_conserve

    if not 1 <= turns <= MOST_TURNS:
        raise SettingError(f"--turns = {turns}: expected a whole number from 1 to {MOST_TURNS}")
    setup = Setup(rates_of(rates), caps_of(caps), errors_of(errors), turns, seed)
    for pair in setup.caps:
        check_caps(pair)
    work = read_conversations(trace_path, turns, seed)
    coding = None if coding_path is None else read_coding_work(coding_path)
    say_if_cold()
    result = reproduce_conserve(work, setup)
    if coding is not None:
        result |= {"coding": reproduce_coding(coding, seed)}
    answer(result, json_out, show_conserve)


def read_conversations(path: str | None, turns: int, seed: int) -> Workload:
    """The leading turns of the trace in `path`, or of generated conversations, without think time.

    Raises TraceError, SettingError.
    """
    from control.workload.conserve_runs import generated, leading_turns, without_think_time
    from control.workload.load import load_trace

    if path is None:
        note = "no trace was given: conversations are generated, and no figure of the paper belongs to them"
        return without_think_time(generated(turns, seed))._replace(problems=(note,))
    work = load_trace(path)
    if work.n_streams == 0:
        raise SettingError(f"--trace = {path!r}: expected conversations; a trace of format {work.format} has none")
    return without_think_time(leading_turns(work, turns))


def rates_of(text: str) -> list[float]:
    """Rates in conversations/s. Raises SettingError."""
    values = numbers("--rates", text)
    for value in values:
        if not RATES[0] <= value <= RATES[1]:
            low, high = RATES
            raise SettingError(
                f"--rates = {text!r}: {value:g}: expected numbers from {low:g} to {high:g} conversations/s"
            )
    return values


def caps_of(text: str) -> "list[Caps]":
    """Pairs of caps, each once, W. Raises SettingError."""
    from control.tuning.conserve_setup import Caps

    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            pairs.append(Caps(*(float(cap) for cap in part.split("/"))))
        except (TypeError, ValueError) as error:
            raise SettingError(f"--caps = {part!r}: expected W of the prefiller / of the decoders: 300/200") from error
    if not pairs:
        raise SettingError(f"--caps = {text!r}: expected W of the prefiller / of the decoders: 300/200")
    return list(dict.fromkeys(pairs))


def errors_of(text: str) -> list[float]:
    """Shares of wrong turns in per cent; A..B stands for A, A + 5 ... and B. Raises SettingError."""
    values: list[float] = []
    for part in text.split(","):
        ends = [per_cent(end, text) for end in part.split("..")] if part.strip() else []
        if len(ends) > 2 or ends != sorted(ends):
            raise SettingError(f"--error = {text!r}: {part!r} is no range: expected two per cents, as 0..50")
        steps = math.ceil((ends[-1] - ends[0]) / ERROR_STEP) if ends else 0
        values += [min(ends[0] + ERROR_STEP * k, ends[-1]) for k in range(steps + 1)] if ends else []
    if not values:
        raise SettingError(f"--error = {text!r}: expected per cents, as 10, 0,10,20 or 0..50")
    return list(dict.fromkeys(values))


def per_cent(part: str, text: str) -> float:
    """One per cent out of the `text` of --error. Raises SettingError."""
    try:
        value = float(part)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 100.0:
        raise SettingError(f"--error = {text!r}: {part.strip()!r}: expected per cents from 0 to 100, as 10 or 0..50")
    return value
