"""Local queue: which waiting call an instance admits next."""

from control.jit import compiled
from control.policy.codes import FCFS
from control.policy.tables import Table
from control.policy.urgency import urgency_s


@compiled
def pick_waiting(calls: Table, head: int, queue: int, now_s: float) -> int:
    """Row of the waiting call to admit next.

    `head` is the first call of the queue in order of arrival there, and stays first if it was preempted: its work is
    half done. FCFS takes the head; LLF the most urgent, the earlier one on a tie (HexGen-Flow, section 3).
    """
    if queue == FCFS or calls[head]["preemptions"] > 0:
        return head
    best, best_s = head, urgency_s(calls[head], now_s)
    c = calls[head]["next"]
    while c >= 0:
        u = urgency_s(calls[c], now_s)
        if u > best_s:
            best, best_s = c, u
        c = calls[c]["next"]
    return best
