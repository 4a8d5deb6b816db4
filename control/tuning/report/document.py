"""The reproduction report: published experiments measured again, as one object, and that object as Markdown.

A paper is one Part: a function that measures it and a function that turns what was measured into sections.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from control.tuning.report.base import Inputs, Row
from control.tuning.report.conserve import conserve_sections, measure_conserve
from control.tuning.report.hexgen import hexgen_sections, measure_hexgen
from control.tuning.report.markdown import Section, plural

#: Packages whose versions the figures may depend on.
PACKAGES: Final = ("headway", "numpy", "numba")


class Part(NamedTuple):
    """One paper of the report."""

    key: str  # its field in the JSON object
    measure: Callable[[Inputs], Row]
    sections: Callable[[Row], list[Section]]


PARTS: Final = (
    Part("hexgen", measure_hexgen, hexgen_sections),
    Part("conserve", measure_conserve, conserve_sections),
)


def measure(inputs: Inputs, command: str, parts: Sequence[Part] = PARTS) -> Row:
    """Every part of `parts` measured, with what it was measured on. Files are told by their names alone.

    Raises:
        SettingError, FleetError, TraceError: the trace or the profile does not suit.
    """
    head = {
        "command": command,
        "versions": {name: version(name) for name in PACKAGES},
        "trace": Path(inputs.work.name).name,
        "workflows": len(inputs.work.workflows),
        "calls": len(inputs.work.calls),
        "profile": Path(inputs.times.source).name,
        "seeds": inputs.seeds,
    }
    return head | {part.key: part.measure(inputs) for part in parts}


def sections(document: Row, parts: Sequence[Part] = PARTS) -> list[Section]:
    """The document's head, then the sections of every part."""
    return [head_section(document), *(s for part in parts for s in part.sections(document[part.key]))]


def head_section(document: Row) -> Section:
    """What was run, by which command and versions."""
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    what = (
        f"Trace: {document['trace']}, {document['workflows']:,} workflows with {document['calls']:,} calls. Seconds "
        f"per call in artifact mode: {document['profile']}. Arrivals of the full twin: Poisson, "
        f"{plural(document['seeds'], 'seed')} from 0 on; figures are means over them, ± their standard deviation."
    )
    written = f"Written by `{document['command']}` ({versions}). Do not edit: the figures are of that run."
    return Section(1, "Reproduction", (written, what))


def render(document: Row) -> str:
    """The measured object as Markdown."""
    return "\n\n".join(section.text() for section in sections(document)) + "\n"


def renewed(text: str, document: Row, parts: Sequence[Part]) -> str:
    """A document with the sections of `parts` written again and all others left as they are.

    A part that the document lacks is appended.
    """
    chapters = text.rstrip("\n").split("\n## ")
    for part in parts:
        fresh = "\n\n".join(section.text() for section in part.sections(document[part.key])).removeprefix("## ")
        title = fresh.split("\n", 1)[0]
        at = [k for k, chapter in enumerate(chapters) if k > 0 and chapter.split("\n", 1)[0] == title]
        chapters[at[0] if at else len(chapters) :] = [fresh + "\n", *chapters[at[0] + 1 if at else len(chapters) :]]
    return "\n## ".join(chapter.rstrip("\n") + "\n" for chapter in chapters)
