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
HEXGEN_ARTIFACT: Final = 4  # HexGen-Flow section 1, form of the authors' artifact

# Queue order: which waiting call an instance admits next.
FCFS: Final = 0
LLF: Final = 1  # HexGen-Flow section 3
EDF: Final = 2  # earliest deadline of the workflow
SJF: Final = 3  # shortest estimated execution time
VTC: Final = 4  # virtual counters per workflow (HexGen-Flow section 6)
QLM: Final = 5  # groups by time left (HexGen-Flow section 6)
PLAS: Final = 6  # least attained service of the workflow

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
CALL_STATES: Final = ("planned", "waiting", "prefill", "decode", "completed", "refused", "cancelled")
INSTANCE_STATES: Final = ("up", "draining", "down")

# Where a call spends its time; each is measured by itself.
IN_QUEUE: Final = 0
IN_PREFILL: Final = 1
IN_DECODE: Final = 2
IN_PREEMPTION: Final = 3  # waiting again, and computing again what was lost

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
    "vtc": PolicyCodes(ROUND_ROBIN, VTC),
    "qlm": PolicyCodes(ROUND_ROBIN, QLM),
    "sjf": PolicyCodes(ROUND_ROBIN, SJF),
    "edf": PolicyCodes(ROUND_ROBIN, EDF),
    "plas": PolicyCodes(ROUND_ROBIN, PLAS),
    "least-loaded": PolicyCodes(LEAST_LOADED, FCFS),
    "p2c": PolicyCodes(POWER_OF_TWO, FCFS),
}


FORMS: Final = ("paper", "artifact")


def policy_codes(name: str, form: str = "paper") -> PolicyCodes:
    """Codes of a named policy; `form` chooses between the two forms of HexGen-Flow's dispatch score.

    Raises:
        SettingError: the name or the form is not known.
    """
    if form not in FORMS:
        raise SettingError(f"form = {form!r}: expected one of {', '.join(FORMS)}")
    if name not in POLICIES:
        raise SettingError(f"policy = {name!r}: expected one of {', '.join(POLICIES)}")
    codes = POLICIES[name]
    if form == "artifact" and codes.dispatch == HEXGEN:
        return codes._replace(dispatch=HEXGEN_ARTIFACT)
    return codes
