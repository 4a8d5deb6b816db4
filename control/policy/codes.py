"""Numbers that kernels branch on, and the names people use for them.

Functions passed as arguments are never cached by Numba, so policies are selected by number. Every code is a plain
integer constant here; names and combinations are Python-side only.
"""

from typing import Final, NamedTuple

from control.errors import SettingError

# Dispatch: which instance takes a call.
ROUND_ROBIN: Final = 0
LEAST_LOADED: Final = 1
POWER_OF_TWO: Final = 2
HEXGEN: Final = 3  # HexGen-Flow section 1, paper form

# Queue order: which waiting call an instance admits next.
FCFS: Final = 0
LLF: Final = 1  # HexGen-Flow section 3

# State of an instance.
UP: Final = 0
DRAINING: Final = 1
DOWN: Final = 2

# State of a call.
PLANNED: Final = 0  # its group is not ready yet
WAITING: Final = 1  # in an instance's queue
PREFILL: Final = 2
DECODE: Final = 3
COMPLETED: Final = 4
REFUSED: Final = 5
CANCELLED: Final = 6

# State of a workflow.
FUTURE: Final = 0
ACTIVE: Final = 1
DONE: Final = 2
BROKEN: Final = 3  # ended early: a call was refused and the workflow does not go on

# Why a call ended without completing.
NO_CAUSE: Final = 0
TOO_LONG: Final = 1  # the context exceeds every instance's limit
NO_INSTANCE: Final = 2  # no instance that could take it is up
WORKFLOW_ENDED: Final = 3  # an earlier call of its workflow was refused

CAUSES: Final = ("", "too_long", "no_instance", "workflow_ended")
INSTANCE_STATES: Final = ("up", "draining", "down")

# What an instance is doing.
IDLE: Final = 0
DECODING: Final = 1  # iterations of decode only, fast-forwarded
MIXED: Final = 2  # one iteration with prefill tokens

# Journal entries.
PLACED: Final = 0
CALL_ENDED: Final = 1
WORKFLOW_ENDED_ENTRY: Final = 2
PREEMPTED: Final = 3


class PolicyCodes(NamedTuple):
    """The two levels of a named policy."""

    dispatch: int
    queue: int


POLICIES: Final = {
    "hexgen": PolicyCodes(HEXGEN, LLF),
    "wb-fcfs": PolicyCodes(HEXGEN, FCFS),
    "rr-fcfs": PolicyCodes(ROUND_ROBIN, FCFS),
    "rr-pq": PolicyCodes(ROUND_ROBIN, LLF),
    "least-loaded": PolicyCodes(LEAST_LOADED, FCFS),
    "p2c": PolicyCodes(POWER_OF_TWO, FCFS),
}


def policy_codes(name: str) -> PolicyCodes:
    """Codes of a named policy.

    Raises:
        SettingError: the name is not known.
    """
    if name not in POLICIES:
        raise SettingError(f"policy = {name!r}: expected one of {', '.join(POLICIES)}")
    return POLICIES[name]
