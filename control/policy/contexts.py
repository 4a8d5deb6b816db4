"""The tables of what is kept between calls (cached prefixes, pins), with the clock and the journal of a world.

As in tables.py, one row is indexed as `table[i]["field"]`.
"""

import numpy as np

#: One row per cached prefix held on an instance.
PREFIX = np.dtype(
    [
        ("instance", "i8"),
        ("key", "i8"),  # row in the prefix key space, -1: remnant of a preempted call
        ("call", "i8"),  # the preempted call, -1: none
        ("blocks", "i8"),  # KV blocks it owns
        ("base", "i8"),  # leading blocks that stand in the shared prefix `parent`
        ("parent", "i8"),  # key of that shared prefix, -1: none
        ("refs", "i8"),  # running calls that use it; evictable at 0
        ("prev", "i8"),
        ("next", "i8"),
    ]
)

#: One row per stream: where a conversation's context is kept (ConServe, section 2).
PIN = np.dtype(
    [
        ("instance", "i8"),  # its decoder, -1: none
        ("reserved", "i8"),  # KV blocks set aside there
        ("peak", "i8"),  # most tokens its context will hold; only the oracle need reads it
        ("tokens", "i8"),  # tokens of its context after the last turn that ended
        ("prompt_tokens", "i8"),  # input tokens of the last turn that ended
        ("turns", "i8"),  # turns that ended
        ("input_tokens", "i8"),  # of those turns
        ("cached_tokens", "i8"),  # input tokens of those turns found in a cache
        ("sent", "i8"),  # times its KV moved
        ("breaks", "i8"),  # turns that found the pin or its KV gone
        ("break_cause", "i8"),  # codes.INSTANCE_LOST ...: of the latest, -1: none
        ("at_home", "i8"),  # 1: it was pinned when its latest turn came
        ("lost_cause", "i8"),  # why it has no instance any more, until its next turn finds out, -1: it was not lost
        ("workflow", "i8"),  # row of the workflow it belongs to
        ("recomputed", "i8"),  # history tokens computed again
        ("last_s", "f8"),  # time its last turn ended, -1: none has
        ("first_token_s", "f8"),  # time of the first token of its latest turn, -1: none
    ]
)

#: One row: the clock and the counters of a world.
CLOCK = np.dtype(
    [
        ("now_s", "f8"),
        ("next_workflow", "i8"),  # row of the next workflow to arrive
        ("rotation", "i8"),  # instance after the last one chosen: where ties start
        ("events", "i8"),
        ("ended_calls", "i8"),
        ("n_dirty", "i8"),
        ("n_journal", "i8"),
        ("n_receipts", "i8"),  # receipts so far, kept or not
        ("n_free_prefixes", "i8"),
        ("n_shared", "i8"),  # prefix keys below this are shared between workflows, the others are streams
        ("exact", "i8"),  # 1: one event per iteration (reference mode); 0: fast-forward
        ("open_workflows", "i8"),  # arrived and not ended
        ("held_head", "i8"),  # first call that waits for a decoder with room, -1: none
        ("held_tail", "i8"),
        ("n_held", "i8"),
        ("mates_held", "i8"),  # 1: a workflow with held calls has come to hold KV
        ("n_handed", "i8"),  # calls whose prefill ended in the run just over and that decode elsewhere
        ("breaks", "i8"),  # turns that found their pin or its KV gone
        ("first_arrival_s", "f8"),
    ]
)

#: One row per instance and receipt: what a placement was decided on. The newest receipts are kept, in a ring.
RECEIPT = np.dtype(
    [
        ("t_comp_s", "f8"),  # estimated execution time there; inf: it may not go there, nan: the rule does not ask
        ("t_queue_s", "f8"),  # queued_work_s of the instance then
        ("score", "f8"),  # larger wins, -inf: no candidate
        ("why", "i8"),  # codes.CANDIDATE, IS_DOWN ...: why it was none; -1: nothing was written here yet
    ]
)

#: One row per entry since the journal was last drained.
JOURNAL = np.dtype(
    [
        ("at_s", "f8"),
        ("kind", "i8"),  # codes.PLACED ...
        ("row", "i8"),  # of the call or workflow it speaks of
        ("instance", "i8"),
        ("receipt", "i8"),  # of PLACED: number of what was compared, -1: none
    ]
)
