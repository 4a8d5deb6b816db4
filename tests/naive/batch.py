"""Continuous batching of one instance: what a run holds and what it leaves behind."""

import math

from control.policy.codes import BY_CLIENT, DECODE, DOWN, LLF, PLAS, PREFILL, QLM, VTC, WAITING
from tests.naive import cache, pins
from tests.naive.orders import Order, pick
from tests.naive.state import Call, Instance, Run


def growth(instance: Instance, n: int) -> int:
    """Blocks that the decoding calls need for their next `n` tokens."""
    return sum(
        cache.blocks_for(instance, call.kv + n) - call.base - call.own
        for call in instance.batch
        if call.state == DECODE
    )


def preempt_youngest(instance: Instance, now_s: float) -> None:
    """The call admitted last goes back to the head of the queue."""
    call = instance.batch.pop()
    cache.give_back(instance, call, instance.remnants if instance.caching else None, call.row)
    call.preemptions += 1
    call.log.append(("preempted", now_s))
    instance.preemptions += 1
    call.chunk, call.state = 0, WAITING
    instance.queue.insert(0, call)


def may_change(order: Order) -> bool:
    """Whether who comes first can change while the same calls wait: a run must not be longer than an iteration."""
    return order.queue in (VTC, QLM, PLAS) or (order.queue == LLF and order.aging_s < math.inf)


def queue_times_s(instance: Instance, call: Call, until_s: float) -> tuple[float, float]:
    """Time since the call came into the queue by whose calls ran meanwhile: its own tenant's, other tenants'."""
    own_s = other_s = 0.0
    for run in instance.runs:
        share = run.tenants.count(call.tenant) / len(run.tenants)
        own_s += share * run.overlap_s(call.log[-1][1], until_s)
        other_s += (1.0 - share) * run.overlap_s(call.log[-1][1], until_s)
    return own_s, other_s


def begin_running(instance: Instance, call: Call, now_s: float) -> None:
    """The call is admitted; what it generated before a preemption is computed again on account of that.

    One that generated its first token elsewhere decodes from here on.
    """
    waited = call.log[-1][0] == "queue"
    if waited:
        leave_queue(instance, call, now_s)
    if waited or call.emitted == 0:
        call.log.append(("decode" if call.emitted else "prefill", now_s))


def leave_queue(instance: Instance, call: Call, now_s: float) -> None:
    """Its time in the queue ends."""
    own_s, other_s = queue_times_s(instance, call, now_s)
    call.queue_own_s += own_s
    call.queue_other_s += other_s


def fetch(instance: Instance, call: Call, now_s: float) -> None:
    """A prefiller fetches a turn's history from its home, as far as it is left there, and runs nothing meanwhile."""
    home, conversation = call.home, call.conversation
    call.arrived = 0 if home is None else min(call.arrived, cache.standing_tokens(home, call))
    if home is None or conversation is None or call.arrived <= call.kv:
        return
    call.kv = call.arrived
    home.sent += 1
    home.sent_tokens += call.arrived
    conversation.sent += 1
    hold_up(instance, home.costs.transfer_ms(call.arrived), now_s)


def hold_up(instance: Instance, ms: float, now_s: float) -> None:
    """The instance begins no iteration for so much longer: KV is handed over."""
    instance.sending_until_s = max(now_s, instance.sending_until_s) + ms * 1e-3


def give_chunk(call: Call, budget: int) -> int:
    """The call prefills what the token budget allows; what is left of the budget."""
    call.chunk = min(budget, call.target - call.kv)
    return budget - call.chunk


def admit_waiting(instance: Instance, budget: int, order: Order, now_s: float) -> None:
    """Admit while seats, token budget and blocks last; nobody passes the call picked first."""
    coming = growth(instance, 1)
    while instance.queue and len(instance.batch) < instance.max_num_seqs and budget > 0:
        call = pick(instance, order, now_s)
        call.target = call.input_tokens + call.emitted
        prefix, blocks = cache.find_hit(instance, call)
        if not cache.can_admit(instance, call, prefix, blocks, coming):
            prefix, blocks = cache.shared_prefix(instance, call)
        if not cache.can_admit(instance, call, prefix, blocks, coming):
            if instance.batch:
                return
            prefix, blocks = None, 0
        instance.queue.remove(call)
        instance.batch.append(call)
        begin_running(instance, call, now_s)
        instance.counters[call.workflow].tokens += call.input_tokens
        cache.take_context(instance, call, prefix, blocks)
        call.state = PREFILL
        if call.only_prefills and call.arrived > call.kv:
            fetch(instance, call, now_s)
        pins.note_recompute(instance, call)
        call.cached_tokens += call.kv
        if call.started_s < 0:
            call.started_s = now_s
        budget = give_chunk(call, budget)


def make_batch(instance: Instance, order: Order, now_s: float) -> bool:
    """Preempt, share the token budget, admit; whether any call was preempted."""
    preempted = False
    while growth(instance, 1) > instance.available:
        preempt_youngest(instance, now_s)
        preempted = True
    budget = instance.max_num_batched_tokens
    budget -= sum(call.state == DECODE for call in instance.batch)
    for call in instance.batch:
        if call.state == PREFILL:
            budget = give_chunk(call, budget)
    if not preempted or not instance.batch:
        admit_waiting(instance, budget, order, now_s)
    return preempted


def longest_run(instance: Instance, decoding: list[Call]) -> int:
    """Decode iterations until a call ends or the blocks run out."""
    n, left = 1, min(call.limit - call.emitted for call in decoding)
    while n < left and growth(instance, n + 1) <= instance.available:
        n += 1
    return n


def book_idle(instance: Instance, until_s: float) -> None:
    """Book the idle draw since energy was last booked."""
    joules = instance.costs.row["idle_w"] * (until_s - instance.accounted_s)
    instance.energy_j += joules
    instance.idle_j += joules
    instance.accounted_s = until_s


def plan(instance: Instance, order: Order, exact: bool, now_s: float) -> None:
    """At a batch boundary: make up the batch and begin its run."""
    if instance.state == DOWN or instance.run is not None or not (instance.batch or instance.queue):
        return
    if instance.accounted_s < now_s:
        book_idle(instance, now_s)
    preempted = make_batch(instance, order, now_s)
    decoding = [call for call in instance.batch if call.state == DECODE]
    prefills = [call for call in instance.batch if call.state == PREFILL and call.chunk > 0]
    b, k, p = len(decoding), sum(call.kv for call in decoding), sum(call.chunk for call in prefills)
    if prefills:
        n, ms = 1, instance.costs.mixed_ms(b, k, [(call.kv, call.chunk) for call in prefills])
    else:
        n = 1 if exact or preempted or (instance.queue and may_change(order)) else longest_run(instance, decoding)
        ms = instance.costs.decode_ms(b, k, n)
    tenants = [call.tenant for call in instance.batch]
    lead_s = max(0.0, instance.sending_until_s - now_s)
    end_s = now_s + lead_s + ms * 1e-3
    instance.run = Run(now_s, end_s, n, b, k, p, instance.costs.power_w(b, p), tenants, lead_s)
    instance.runs.append(instance.run)


def cut_run(instance: Instance, now_s: float) -> None:
    """Something new waits: end a run of several iterations at the first boundary that is not past."""
    run = instance.run
    if run is None or run.prefills:
        return
    for n in range(1, run.n):
        end_s = run.start_s + run.lead_s + instance.costs.decode_ms(run.decodes, run.kv, n) * 1e-3
        if end_s >= now_s:
            run.n, run.end_s = n, end_s
            return


def book_run(instance: Instance, now_s: float) -> float:
    """Book the run up to now; the joules of its iterations. While KV is sent the instance draws its idle power."""
    run = instance.run
    assert run is not None
    seconds = now_s - run.start_s
    lead_s = min(run.lead_s, seconds)
    joules, lead_j = run.watts * (seconds - lead_s), instance.costs.row["idle_w"] * lead_s
    instance.run = None
    instance.energy_j += joules + lead_j
    instance.idle_j += lead_j
    instance.busy_s += seconds - lead_s
    instance.accounted_s = now_s
    return joules


def finish_run(instance: Instance, now_s: float) -> tuple[list[Call], list[Call]]:
    """The run ends now: tokens, joules, blocks; calls that reached their length, and calls that decode elsewhere."""
    run = instance.run
    assert run is not None
    a_token = book_run(instance, now_s) / (run.prefills + run.decodes)
    instance.iterations += run.n
    for call in list(instance.batch):
        step_call(instance, call, run.n, a_token, now_s)
    ended = [call for call in instance.batch if call.emitted >= call.limit or call.cause == BY_CLIENT]
    handed = [call for call in instance.batch if call not in ended and goes_on_elsewhere(instance, call)]
    instance.batch = [call for call in instance.batch if call not in ended and call not in handed]
    for call in ended:
        call.log.append(("end", now_s))
        cache.release(instance, call)
        unload(instance, call)
    for call in handed:
        cache.give_back(instance, call, None, -1)
        unload(instance, call)
    return ended, handed


def goes_on_elsewhere(instance: Instance, call: Call) -> bool:
    """Whether the call has prefilled on an instance where it was only to prefill."""
    return call.only_prefills and call.state == DECODE and instance.rules.hands_over


def unload(instance: Instance, call: Call) -> None:
    """The call's estimate is queued work no more; nothing left is exactly 0."""
    instance.queued_work_s -= call.t_comp_s
    if not instance.batch and not instance.queue:
        instance.queued_work_s = 0.0


def step_call(instance: Instance, call: Call, n: int, a_token: float, now_s: float) -> None:
    """Move one call of the batch on."""
    if call.state == DECODE:
        call.kv += n
        call.energy_j += a_token
        cache.grow(instance, call)
        call.emitted += n
        instance.counters[call.workflow].tokens += 2 * n
    elif call.chunk > 0:
        call.kv += call.chunk
        call.energy_j += a_token * call.chunk
        call.prefill_j += a_token * call.chunk
        instance.prefill_j += a_token * call.chunk
        call.chunk = 0
        if call.kv == call.target:
            call.state = DECODE
            call.log.append(("decode", now_s))
            cache.publish(instance, call)
            call.first_token_s = now_s if call.emitted == 0 else call.first_token_s
            call.emitted += 1
