"""ConServe's part of the report: what is measured, and the order of its sections."""

from typing import Final

from control.tuning.conserve_reference import AMPD_ERROR, RATES, SATURATING, SEED, TURNS
from control.tuning.conserve_setup import POLICIES, Caps
from control.tuning.report.base import Inputs, Row
from control.tuning.report.conserve_coding import coding_section
from control.tuning.report.conserve_text import (
    energy_section,
    headline_section,
    latency_section,
    misses_section,
    service_section,
    sweep_section,
    violation_section,
)
from control.tuning.report.markdown import Section, plural
from control.tuning.reproduce_coding import reproduce_coding
from control.tuning.reproduce_conserve import Setup, reproduce_conserve
from control.workload.conserve_runs import generated, without_think_time

CAPS: Final = (Caps(300.0, 300.0), Caps(300.0, 200.0))
ERRORS: Final = tuple(5.0 * k for k in range(11))  # per cent


def measure_conserve(inputs: Inputs) -> Row:
    """Every policy by rate and caps, AMPD by error, and coding agents where a trace of them is given.

    Raises:
        SettingError: the trace does not suit.
    """
    work = inputs.talks or without_think_time(generated(TURNS, SEED))
    found = reproduce_conserve(work, Setup(RATES, CAPS, (AMPD_ERROR,), TURNS, SEED))
    sweep = reproduce_conserve(work, Setup((SATURATING,), CAPS[:1], ERRORS, TURNS, SEED))
    inputs.say("ConServe: policies by rate, caps and error done")
    coding = reproduce_coding(inputs.coding, SEED) if inputs.coding else None
    if coding:
        inputs.say("ConServe: coding agents done")
    return {**found, "sweep": sweep, "coding": coding}


def conserve_sections(part: Row) -> list[Section]:
    """The sections of ConServe, from the headline to what is not reproduced."""
    return [
        Section(2, "ConServe (arXiv 2606.01839)", (_setup(part), _conventions())),
        headline_section(part),
        latency_section(part),
        violation_section(part),
        energy_section(part),
        sweep_section(part),
        service_section(part),
        coding_section(part["coding"]),
        misses_section(part),
    ]


def _setup(part: Row) -> str:
    """What was run on what."""
    name = part["trace"].replace("\\", "/").rsplit("/", 1)[-1]
    return (
        f"Four A40 with Qwen3-0.6B, one prefiller and three decoders, or four mixed engines under collocation. Trace: "
        f"{name}, {part['conversations']:,} conversations of {plural(part['turns'], 'turn')}, {part['calls']:,} calls, "
        f"no think time, Poisson arrivals of seed {part['seed']}. Policies: {', '.join(POLICIES)}."
    )


def _conventions() -> str:
    """How latencies are told."""
    return (
        "Latencies are in units of the same conversation's standalone run, alone on an idle engine; the SLO is 5 x "
        "standalone for TTFET, TBT and E2E. TTFET: first token of the last turn since arrival. *The paper's "
        "conventions*: a decoder must have the peak KV of the whole conversation free, and what turn 1 waits to be let "
        "in, in the prefiller's queue and for a decoder with room, is no latency under policies with a prefiller. "
        "Tables beside the paper follow them; a section of its own shows what changes without."
    )
