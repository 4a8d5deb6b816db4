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
SESSION: Final = 5  # where the conversation's last turn ran
PREFIX: Final = 6  # where most of the context is cached
COLLOCATED: Final = 7  # ConServe section 5: most free KV, pinned, prefill and decode on one instance
FULL_DISAGG: Final = 8  # ConServe section 5: every turn prefilled anew on the prefill tier, KV moved each time
CONSERVE: Final = 9  # ConServe section 2
AMPD: Final = 10  # ConServe section 5: as CONSERVE, but each later turn is routed by itself

# Role of an instance.
MIXED_ROLE: Final = 0
PREFILL_ROLE: Final = 1
DECODE_ROLE: Final = 2
ROLES: Final = ("mixed", "prefill", "decode")

# How much KV a decoder must have free to take a conversation (ConServe section 2).
OBSERVED: Final = 0  # what its context holds now; never predicted
ORACLE: Final = 1  # the most it will ever hold
NEEDS: Final = ("observed", "oracle")

# How AMPD routes a later turn.
INJECTED: Final = 0  # a share of the turns is sent to the prefill tier by mistake (ConServe section 5)
BY_SLACK: Final = 1  # to the side with slack left, by predicted lengths
ROUTERS: Final = ("injected", "slack")

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
PASSED_OVER: Final = 3  # up, but the call that is being placed failed there; never between two deeds

# State of a call.
PLANNED: Final = 0  # its group is not ready yet
WAITING: Final = 1  # in an instance's queue
PREFILL: Final = 2
DECODE: Final = 3
COMPLETED: Final = 4
REFUSED: Final = 5
CANCELLED: Final = 6
TRANSFER: Final = 7  # its KV moves to another instance
HELD: Final = 8  # no decoder has room for its KV yet
FAILED: Final = 9  # the server that had it failed, and it could not be sent to another one

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
BY_CLIENT: Final = 4  # whoever sent the workflow gave it up
SERVER_LOST: Final = 5  # its server could not be reached, broke off, or answered with an error of its own
STALLED: Final = 6  # its server sent nothing for too long
REJECTED: Final = 7  # its server would not take the request as it is
ALL_FULL: Final = 8  # every server that could take it said that it is full
RESTARTED: Final = 9  # the gateway itself was restarted

CAUSES: Final = (
    *("", "too_long", "no_instance", "workflow_ended", "by_client"),
    *("server_lost", "stalled", "rejected", "all_full", "restarted"),
)
CALL_STATES: Final = (
    *("planned", "waiting", "prefill", "decode", "completed", "refused", "cancelled"),
    *("transfer", "held", "failed"),
)
INSTANCE_STATES: Final = ("up", "draining", "down")

# Where a call spends its time; each is measured by itself.
IN_QUEUE: Final = 0
IN_PREFILL: Final = 1
IN_DECODE: Final = 2
IN_PREEMPTION: Final = 3  # waiting again, and computing again what was lost
IN_TRANSFER: Final = 4  # its KV is on the way to another instance
IN_HOLD: Final = 5  # waiting for a decoder with room for its KV

# What a placement was decided by.
BY_SCORE: Final = 0  # the dispatch rule's score of every instance
BY_PIN: Final = 1  # the conversation is kept there
BY_TIER: Final = 2  # least queued of the prefill tier
BY_ROOM: Final = 3  # most unreserved KV

# Why an instance was no candidate of a placement.
CANDIDATE: Final = 0  # it was one
IS_DOWN: Final = 1
IS_DRAINING: Final = 2
FAILED_BEFORE: Final = 3  # the call failed there already
CONTEXT_TOO_LONG: Final = 4
WRONG_ROLE: Final = 5
NOT_PINNED: Final = 6  # the conversation is kept on another one
NO_ROOM: Final = 7  # too little KV is unreserved
NOT_COMPARED: Final = 8  # the dispatch rule did not look at it
FILTERS: Final = (
    *("", "down", "draining", "failed_before", "too_long", "wrong_role", "not_pinned", "no_room", "not_compared"),
)

# Why a pinned conversation lost its KV or its decoder.
INSTANCE_LOST: Final = 0  # its decoder failed or drained
EVICTED: Final = 1  # other contexts needed the blocks
EXPIRED: Final = 2  # idle for longer than the retention limit
COMPACTED: Final = 3  # its own turn shrank the context
UNFIT: Final = 4  # its instance may not decode it any more: another policy, or the context limit
BREAKS: Final = ("instance_lost", "evicted", "expired", "compacted", "unfit")

# What is done to a world from outside.
FAIL: Final = 0
COME_BACK: Final = 1
BEGIN_DRAIN: Final = 2
GIVE_UP: Final = 3
SWITCH_POLICY: Final = 4

# What is told of requests to real servers.
REQUEST: Final = 5  # a request has come
FIRST_TOKEN: Final = 6
ANSWERED: Final = 7  # its answer has ended, whatever the outcome
PREFILLED: Final = 8  # the prefill leg has been answered
SEND_AGAIN: Final = 9  # its server failed before the first byte
SUSPEND: Final = 10  # a server is taken to be dead
CLOSE: Final = 11  # no more calls of a workflow will come
ABANDON: Final = 13  # the client of a call has gone
METER: Final = 12  # book the draw of remote instances up to now

# What an instance is doing.
IDLE: Final = 0
DECODING: Final = 1  # iterations of decode only, fast-forwarded
MIXED: Final = 2  # one iteration with prefill tokens

# Journal entries.
PLACED: Final = 0
CALL_ENDED: Final = 1
WORKFLOW_ENDED_ENTRY: Final = 2
PREEMPTED: Final = 3
SENT: Final = 4  # a call's KV began to move to `instance`
PIN_BROKEN: Final = 5  # `row` is the call that found its pin broken
DISPATCHED: Final = 6  # a call is to be sent to the real server `instance`
ABORTED: Final = 7  # a call that runs on the real server `instance` is to be broken off there


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
    "session-affinity": PolicyCodes(SESSION, FCFS),
    "prefix-affinity": PolicyCodes(PREFIX, FCFS),
    "collocated": PolicyCodes(COLLOCATED, FCFS),
    "full-disagg": PolicyCodes(FULL_DISAGG, FCFS),
    "conserve": PolicyCodes(CONSERVE, FCFS),
    "ampd": PolicyCodes(AMPD, FCFS),
}

#: Policies that place conversations; the others place every call by itself.
CONVERSATION_POLICIES: Final = (
    *("session-affinity", "prefix-affinity", "collocated", "full-disagg", "conserve", "ampd"),
)


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
