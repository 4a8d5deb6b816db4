"""Groups of waiting calls by time left (HexGen-Flow, section 6, after QLM).

A call's own SLO is its workflow's over 15. Calls whose own deadlines fall into the same 10 s form a group. Groups are
served in the order in which they formed; where a group's estimated wait, 200 tokens a call at 300 tokens/s for itself
and all ahead of it, exceeds its time left, all groups are served by time left instead. Inside a group the first to come
is the first served.
"""

import numpy as np

from control.jit import compiled, compiled_with_memory
from control.policy.tables import Ints, Record, Table

SLO_SHARE = 15.0
GROUP_S = 10.0
WAIT_A_CALL_S = 200.0 / 300.0
MOST_GROUPS = 512  # groups that form later share the last place


@compiled
def qlm_group(workflow: Record, call: Record) -> int:
    """Number of the 10 s in which the call's own deadline falls."""
    return int((call["ready_s"] + workflow["slo_s"] / SLO_SHARE) // GROUP_S)


@compiled_with_memory
def pick_qlm(workflows: Table, calls: Table, head: int, now_s: float) -> int:
    """Row of the waiting call to admit next; `head` is the first in order of arrival."""
    groups = np.empty(MOST_GROUPS, np.int64)
    counts = np.zeros(MOST_GROUPS, np.int64)
    firsts = np.empty(MOST_GROUPS, np.int64)
    n, c = 0, head
    while c >= 0:
        n = count_in(groups, counts, firsts, n, qlm_group(workflows[calls[c]["workflow"]], calls[c]), c)
        c = calls[c]["next"]
    if not is_late(groups, counts, n, now_s):
        return firsts[0]
    best = 0
    for g in range(1, n):
        if groups[g] < groups[best]:
            best = g
    return firsts[best]


@compiled
def count_in(groups: Ints, counts: Ints, firsts: Ints, n: int, group: int, call: int) -> int:
    """Count a call into its group, which may be new; the number of groups."""
    for g in range(n):
        if groups[g] == group:
            counts[g] += 1
            return n
    if n == MOST_GROUPS:
        counts[n - 1] += 1
        return n
    groups[n], counts[n], firsts[n] = group, 1, call
    return n + 1


@compiled
def is_late(groups: Ints, counts: Ints, n: int, now_s: float) -> bool:
    """Whether the estimated wait of any group, served in this order, exceeds its time left."""
    ahead = 0
    for g in range(n):
        ahead += counts[g]
        if ahead * WAIT_A_CALL_S > groups[g] * GROUP_S - now_s:
            return True
    return False
