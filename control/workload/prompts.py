"""The text-to-SQL vocabulary: step names, and the static prompts that workflows share at a step.

Names and token counts: HexGen-Flow, sections 1 and 5.
"""

import numpy as np
import numpy.typing as npt

from control.workload.table import Ints

STEPS = (
    "information_retriever",
    "extract_keywords",
    "generate_candidate",
    "revise",
    "unit_tester",
    "generate_unit_test",
    "evaluate",
)

#: A second candidate is asked with a shorter prompt of its own; its key follows those of the steps.
SECOND_CANDIDATE_KEY = len(STEPS)
N_SHARED = len(STEPS) + 1

#: Static prompt tokens by shared key (a step's number, or SECOND_CANDIDATE_KEY); 0: not known, not shared.
STATIC_TOKENS = (0, 611, 9430, 2960, 0, 0, 224, 5416)

_CANDIDATE = STEPS.index("generate_candidate")

_ALIASES = {
    "information retriever": "information_retriever",
    "generate_candidate_llama-agent": "generate_candidate",
    "generate_candidate_1": "generate_candidate",
    "generate_candidate_2": "generate_candidate",
}


def step_name(name: str) -> str:
    """The one name of a step: "Information Retriever" is information_retriever, and so on."""
    plain = name.strip().lower()
    return _ALIASES.get(plain, plain.replace(" ", "_"))


def static_prompts(step: Ints, second: npt.NDArray[np.bool_], input_tokens: Ints) -> tuple[Ints, Ints]:
    """(shared_key, shared_tokens) of calls at `step`, an index into STEPS.

    `second` marks second candidates. At least the last input token is the call's own.
    """
    key = np.where(second & (step == _CANDIDATE), SECOND_CANDIDATE_KEY, step)
    tokens = np.minimum(np.array(STATIC_TOKENS)[key], input_tokens - 1)
    return np.where(tokens > 0, key, -1), tokens
