"""What the slow twin knows: plain objects.

Nothing is kept that can be counted: free blocks, loads and lengths of lists are computed where they are asked for.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from control.policy.codes import NO_CAUSE, PLANNED
from tests.naive.costs import CostModel
from tests.naive.rules import Rules


@dataclass(eq=False)
class Call:
    """One call: what arrives, then what happens to it. Names as in policy.tables.CALL_STATE."""

    row: int
    workflow: int
    group: int
    step: int
    tenant: int
    input_tokens: int
    output_tokens: int
    shared_key: int
    shared_tokens: int
    stream_key: int
    history_tokens: int
    tool_s: float
    draw_a: float
    draw_b: float
    state: int = PLANNED
    cause: int = NO_CAUSE
    instance: int = -1
    ready_s: float = -1.0
    placed_s: float = -1.0
    started_s: float = -1.0
    first_token_s: float = -1.0
    finished_s: float = -1.0
    t_comp_s: float = 0.0
    t_queue_s: float = 0.0
    score: float = 0.0
    runner_up: int = -1
    runner_up_score: float = 0.0
    deadline_s: float = 0.0
    budget_s: float = 0.0
    limit: int = 0  # tokens it will generate
    emitted: int = 0
    target: int = 0  # tokens whose KV prefill must reach
    kv: int = 0  # tokens whose KV is held
    chunk: int = 0  # prefill tokens of the iteration under way
    base: int = 0  # leading blocks borrowed from the shared prefix `base_key`
    base_key: int = -1
    own: int = 0  # blocks of its own
    cached_tokens: int = 0
    preemptions: int = 0
    energy_j: float = 0.0
    prefill_j: float = 0.0
    conversation: "Conversation | None" = None
    only_prefills: bool = False  # where it is now: it decodes elsewhere
    arrived: int = 0  # leading KV tokens that it finds where it goes
    at_home: int = 0  # of those, tokens that stayed behind on the instance it goes back to
    came_from: "Instance | None" = None  # the prefiller that keeps its KV
    arrives_s: float | None = None  # when its KV arrives
    dest: "Instance | None" = None  # where blocks are set aside for it alone
    reserved: int = 0  # how many
    restarts: int = 0
    log: list[tuple[str, float]] = field(default_factory=list)  # phases in order, and when each began
    queue_own_s: float = 0.0
    queue_other_s: float = 0.0
    failure_s: float = 0.0
    critical: int = 0

    @property
    def home(self) -> "Instance | None":
        """Where its conversation is kept."""
        return None if self.conversation is None else self.conversation.home

    @property
    def context(self) -> int:
        """Tokens of its context: what was sent and what it generated."""
        return self.input_tokens + self.emitted

    def spent_s(self, phase: str) -> float:
        """Time in all stretches of a phase that have ended."""
        total = 0.0
        for (name, from_s), (_, to_s) in pairwise(self.log):
            total += to_s - from_s if name == phase else 0.0
        return total

    @property
    def prefill_s(self) -> float:
        """Time computing its prompt."""
        return self.spent_s("prefill")

    @property
    def decode_s(self) -> float:
        """Time generating."""
        return self.spent_s("decode")

    @property
    def preempted_s(self) -> float:
        """Time waiting again, and computing again what was lost."""
        return self.spent_s("preempted")

    @property
    def transfer_s(self) -> float:
        """Time its KV was on the way."""
        return self.spent_s("transfer")

    @property
    def hold_s(self) -> float:
        """Time it waited for a decoder with room."""
        return self.spent_s("hold")


@dataclass(eq=False)
class Workflow:
    """One workflow and its groups of calls, the coming ones first."""

    row: int
    arrival_s: float
    slo_s: float
    tenant: int
    kind: int
    go_on: int
    coming: list[list[Call]]
    groups: list[list[Call]]  # all of them
    template: list[float]  # entries left by step
    open: list[Call] = field(default_factory=list)  # calls of the group under way that have not ended
    left: list[Call] = field(default_factory=list)  # calls of the group under way that have ended, in this order
    group_done_s: float = 0.0
    tool_s: float = 0.0
    attained_s: float = 0.0
    plan_prefill_s: float = 0.0
    plan_decode_s: float = 0.0
    plan_tool_s: float = 0.0
    tool_until_s: float | None = None  # when the tools under way return
    cause: int = NO_CAUSE
    state: int = 0
    finished_s: float = -1.0


@dataclass(eq=False)
class Conversation:
    """A stream of calls, and where its context is kept."""

    row: int
    key: int
    peak: int  # most tokens it will ever hold
    home: "Instance | None" = None  # its decoder
    workflow: Workflow | None = None  # that it was pinned for
    reserved: int = 0  # blocks set aside at home
    tokens: int = 0  # of its context after its last turn
    prompt_tokens: int = 0  # of its last turn
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    sent: int = 0
    breaks: int = 0
    break_cause: int = -1
    was_home: bool = False  # whether it had a home when its latest turn came
    lost_cause: int = -1  # why it has no home any more, until a turn finds out
    recomputed: int = 0
    last_s: float = -1.0
    first_token_s: float = -1.0
    expires_s: float | None = None  # when its idle context is dropped

    @property
    def instance(self) -> int:
        """Row of its home."""
        return -1 if self.home is None else self.home.row


@dataclass(eq=False)
class Counter:
    """What a workflow was served on an instance."""

    tokens: float
    seen: int  # how many workflows had come before, this one included


@dataclass(eq=False)
class Prefix:
    """KV blocks that stay cached on an instance."""

    blocks: int
    base: int = 0  # it goes on from this many leading blocks of the shared prefix `parent`
    parent: int = -1
    shared: bool = False
    users: set[Call] = field(default_factory=set)


@dataclass
class Run:
    """Iterations under way: one with prefill tokens, or `n` of decoding alone."""

    start_s: float
    end_s: float
    n: int
    decodes: int
    kv: int
    prefills: int
    watts: float
    tenants: list[int]  # of the calls in the batch
    lead_s: float = 0.0  # until the first iteration: KV is still being handed over

    def overlap_s(self, from_s: float, to_s: float) -> float:
        """Time of the run between two moments."""
        return max(0.0, min(to_s, self.end_s) - max(from_s, self.start_s))


@dataclass(eq=False)
class Instance:
    """One instance: settings, queue, batch, cached prefixes and counters."""

    row: int
    costs: CostModel
    state: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    blocks: int
    watermark: int
    max_model_len: int
    caching: int
    share_weight: float
    role: int
    rules: Rules
    all_calls: list[Call]  # of the whole twin, to look through
    conversations: list[Conversation]  # of the whole twin, to look through
    queue: list[Call] = field(default_factory=list)  # in order of arrival here
    batch: list[Call] = field(default_factory=list)  # in order of admission
    run: Run | None = None
    runs: list[Run] = field(default_factory=list)  # all runs so far, the one under way last
    counters: dict[int, Counter] = field(default_factory=dict)  # by row of the workflow
    dispatched_s: float = 0.0
    shared: dict[int, Prefix] = field(default_factory=dict)  # by key
    streams: dict[int, Prefix] = field(default_factory=dict)  # by key
    remnants: dict[int, Prefix] = field(default_factory=dict)  # by row of the preempted call
    lru: list[Prefix] = field(default_factory=list)  # prefixes nobody uses, least recently used first
    queued_work_s: float = 0.0  # a running sum, because the order of additions decides its last bits
    accounted_s: float = 0.0
    energy_j: float = 0.0
    idle_j: float = 0.0
    busy_s: float = 0.0
    iterations: int = 0
    preemptions: int = 0
    kv_peak: int = 0
    sending_until_s: float = 0.0
    sent: int = 0
    sent_tokens: int = 0
    evicted_blocks: int = 0
    prefill_j: float = 0.0

    @property
    def pinned(self) -> int:
        """Conversations that are kept here."""
        return sum(conversation.home is self for conversation in self.conversations)

    @property
    def reserved(self) -> int:
        """Blocks set aside: for the conversations kept here, and for calls by themselves."""
        kept = sum(conversation.reserved for conversation in self.conversations if conversation.home is self)
        return kept + sum(call.reserved for call in self.all_calls if call.dest is self)

    @property
    def unreserved(self) -> int:
        """Blocks that nobody has spoken for; less than none where contexts outgrew what was set aside."""
        return self.blocks - self.reserved

    @property
    def reuses(self) -> bool:
        """Whether calls may use what others left here."""
        return bool(self.caching) and self.rules.reuses

    @property
    def free(self) -> int:
        """Blocks that hold nothing."""
        cached = [*self.shared.values(), *self.streams.values(), *self.remnants.values()]
        return self.blocks - sum(c.own for c in self.batch) - sum(prefix.blocks for prefix in cached)

    @property
    def seen(self) -> int:
        """Workflows that have come here."""
        return len(self.counters)

    @property
    def evictable(self) -> int:
        """Blocks of cached prefixes that nobody uses."""
        return sum(prefix.blocks for prefix in self.lru)

    @property
    def available(self) -> int:
        """Blocks that can be had."""
        return self.free + self.evictable
