"""HexGen-Flow's part of the report: what is measured, and the order of its sections."""

from collections.abc import Sequence
from typing import Final

from control.policy.codes import POLICIES
from control.tuning.report.base import Inputs, Row
from control.tuning.report.hexgen_mixes import mix, tenants
from control.tuning.report.hexgen_replay_text import headline_gains, replay_sections, summary_section
from control.tuning.report.hexgen_replays import PUBLISHED_GAINS, PUBLISHED_NAMES, TOLERANCE, replays
from control.tuning.report.hexgen_tuner import rehearsals, tuner_section
from control.tuning.report.hexgen_twin import twin
from control.tuning.report.hexgen_twin_text import mix_section, tenant_section, twin_sections
from control.tuning.report.markdown import Section, bullets, listed, plural, signed_percent
from control.twin.artifact_world import ARTIFACT_POLICIES

#: The authors' traces, T1 to T4; what is not handed out cannot be run.
TRACES: Final = ("T1", "T2", "T3", "T4")
TRACES_AT_HAND: Final = ("T1",)

MEASURED: Final = "measured"  # provenance of a GPU's costs


def measure_hexgen(inputs: Inputs) -> Row:
    """Everything the sections show.

    Raises:
        SettingError, FleetError, TraceError: the trace or the profile does not suit.
    """
    return {
        "published": {key: list(bounds) for key, bounds in PUBLISHED_GAINS.items()},
        "artifact": replays(inputs),
        "twin": twin(inputs),
        "tenants": tenants(inputs),
        "mix": mix(inputs),
        "tuner": rehearsals(inputs),
    }


def hexgen_sections(part: Row) -> list[Section]:
    """The sections of HexGen-Flow, from the headline to what is not reproduced."""
    title = Section(2, "HexGen-Flow (arXiv 2505.05286)", (_modes(part),))
    return [
        title,
        summary_section(part),
        *replay_sections(part["artifact"]),
        *twin_sections(part["twin"]),
        tenant_section(part["tenants"]),
        mix_section(part["mix"]),
        *([tuner_section(part["tuner"])] if part["tuner"] else []),
        Section(3, "What is not reproduced", (bullets(shortfalls(part)),)),
    ]


def _modes(part: Row) -> str:
    """The two ways in which the experiments are run again."""
    slos = listed([f"{base_s:.1f} s on {fleet}" for fleet, base_s in part["artifact"]["base_slo_s"].items()])
    return (
        "The experiments run in two modes. *Artifact mode* follows the authors' simulator: one prefill at a time, a "
        "decode time whatever the batch, no prefix reuse. The *full twin* batches as a real server does: chunked "
        f"prefill, prefix reuse, KV blocks with preemption. Base SLO in artifact mode: {slos}."
    )


def shortfalls(part: Row) -> list[str]:
    """What does not agree with the paper or the artifact, or could not be tried; all counts out of `part`."""
    reference = part["artifact"]["reference"]
    missing = [name for name in TRACES if name not in TRACES_AT_HAND]
    absent = [name for policy, name in PUBLISHED_NAMES.items() if policy not in ARTIFACT_POLICIES]
    found = [f"The authors' traces {listed(missing)} are not at hand: none of their rows is compared."]
    if not reference:
        found.append("The trace used is not the authors' T1: no reference row applies to it.")
    found += [_headline(part, key) for key in PUBLISHED_GAINS]
    if absent:
        found.append(f"Not part of artifact mode, and so compared in the full twin alone: {listed(absent)}.")
    absent = [name for policy, name in PUBLISHED_NAMES.items() if policy not in POLICIES]
    if absent:
        found.append(f"Not part of the full twin: {listed(absent)}.")
    found += _guessed_costs(part["twin"]["costs"])
    far = [row for row in reference if abs(row["difference"]) > TOLERANCE]
    if reference:
        found.append(f"Figures off the artifact's by more than {100 * TOLERANCE:g} %: {len(far)} of {len(reference)}.")
    return found + [_far(row) for row in far]


def _headline(part: Row, key: str) -> str:
    """How often the published lowest gain is reached, by mode."""
    least, most = part["published"][key]
    name = {"p95_gain": "P95", "throughput_gain": "Throughput"}[key]
    reached = []
    for mode, rows in headline_gains(part).items():
        values = [row[key] for row in rows if row[key] is not None]
        met = sum(value >= least for value in values)
        reached.append(f"{met} of {plural(len(values), 'comparison')} in {mode}")
    return f"{name} gain, published as {least:.2f} to {most:.2f}x: {least:.2f}x is reached in {listed(reached)}."


def _guessed_costs(costs: Sequence[Row]) -> list[str]:
    """The GPUs whose costs in the full twin were not measured, in one line; none where all were."""
    guessed = {gpu for fleet in costs for gpu, kind in fleet["provenance"].items() if kind != MEASURED}
    if not guessed:
        return []
    return [
        f"The full twin's costs of {listed(sorted(guessed))} are not measured on them: its gains say how the policies "
        "compare in the twin, not what the paper's hardware would give."
    ]


def _far(row: Row) -> str:
    """A figure that is off, with both values."""
    alpha = "" if row["alpha"] is None else f", alpha {row['alpha']:g}"
    what = f"{row['fleet']} at {row['rate']:g}/s, {row['policy']}{alpha}: {row['figure']}"
    return f"{what} {row['ours']:.4g} against {row['reference']:.4g} ({signed_percent(row['difference'])})."
