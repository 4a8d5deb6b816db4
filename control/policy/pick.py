"""Local queue: which waiting call an instance admits next.

Each rule scans the waiting calls in order of their arrival there; a tie goes to the one that came first. A call that
was preempted stays first: its work is half done.
"""

import math

from control.jit import compiled
from control.policy.codes import EDF, FCFS, LLF, PLAS, QLM, SJF, VTC
from control.policy.qlm import pick_qlm
from control.policy.tables import Record, Table
from control.policy.urgency import urgency_s
from control.policy.vtc import vtc_is_before


@compiled
def order_moves(policy: Record) -> bool:
    """Whether the order of the waiting calls can change while nothing arrives and nothing ends at the instance."""
    queue = policy["queue"]
    return queue == VTC or queue == QLM or queue == PLAS or (queue == LLF and policy["aging_s"] < math.inf)


@compiled
def has_aged(policy: Record, call: Record, now_s: float) -> bool:
    """Whether a call has waited so long that nobody may overtake it any more."""
    return now_s - call["ready_s"] > policy["aging_s"]


@compiled
def is_before(policy: Record, workflows: Table, counters: Table, calls: Table, a: int, b: int, now_s: float) -> bool:
    """Whether waiting call `a`, which came later than `b`, is served before it."""
    queue, one, other = policy["queue"], calls[a], calls[b]
    if queue == LLF:
        return urgency_s(one, now_s) > urgency_s(other, now_s)
    if queue == EDF:
        return one["deadline_s"] < other["deadline_s"]
    if queue == SJF:
        return one["t_comp_s"] < other["t_comp_s"]
    if queue == PLAS:
        return workflows[one["workflow"]]["attained_s"] < workflows[other["workflow"]]["attained_s"]
    if queue == VTC:
        return vtc_is_before(counters, one["workflow"], other["workflow"])
    return False


@compiled
def pick_waiting(policy: Record, workflows: Table, counters: Table, calls: Table, head: int, now_s: float) -> int:
    """Row of the waiting call to admit next.

    `head` is the first call of the queue in order of arrival there, `counters` [w] the instance's virtual counters.
    FCFS takes the head; LLF the most urgent one (HexGen-Flow, section 3), looking no further than the first aged call.
    """
    queue = policy["queue"]
    if queue == FCFS or calls[head]["preemptions"] > 0:
        return head
    if queue == QLM:
        return pick_qlm(workflows, calls, head, now_s)
    best, c = head, calls[head]["next"]
    while c >= 0 and not (queue == LLF and has_aged(policy, calls[calls[c]["prev"]], now_s)):
        if is_before(policy, workflows, counters, calls, c, best, now_s):
            best = c
        c = calls[c]["next"]
    return best
