"""Declared templates of workflows and the lengths history knows before a run has taught any.

A template lists the stages a workflow of its kind is expected to run. Text-to-SQL has the fifteen stages of
HexGen-Flow, section 2; its step lengths are the published means of section 1.
"""

from typing import Final, NamedTuple


class StepHistory(NamedTuple):
    """Mean lengths of a kind of call, tokens."""

    input_tokens: float
    output_tokens: float


TEMPLATES: Final[dict[str, dict[str, int]]] = {
    "text2sql": {
        "information_retriever": 4,
        "extract_keywords": 1,
        "generate_candidate": 1,
        "revise": 4,
        "unit_tester": 3,
        "generate_unit_test": 1,
        "evaluate": 1,
    }
}

#: A step that, when it first runs, ends the planned repeats of another (HexGen-Flow, section 2).
DROPS: Final[dict[str, str]] = {"unit_tester": "revise"}

STEP_HISTORY: Final[dict[str, StepHistory]] = {
    "information_retriever": StepHistory(308, 5),
    "extract_keywords": StepHistory(667, 45),
    "generate_candidate": StepHistory(11748, 678),
    "revise": StepHistory(5963, 79),
    "unit_tester": StepHistory(275, 4),
    "generate_unit_test": StepHistory(1109, 103),
    "evaluate": StepHistory(961, 22),
}

#: What is assumed of a step nobody has seen, until its calls are observed.
UNKNOWN_STEP: Final = StepHistory(1024, 200)

#: Weight of a declared length against one observed call.
DECLARED_WEIGHT: Final = 20.0
#: Weight of UNKNOWN_STEP against one observed call.
UNKNOWN_WEIGHT: Final = 1.0
