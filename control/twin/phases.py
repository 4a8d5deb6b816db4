"""Where the time of each call goes: every phase is timed by itself, as it ends.

A call waits (behind its own tenant's calls, behind others'), prefills, decodes; a preemption takes it back to waiting
and computing again; its KV may be on the way, or held until a decoder has room, which counts as waiting behind others;
a lost instance makes all of it lost time. The parts sum to the time from ready to end.

Whom a call waits behind is metered: while an instance runs, each tenant's meter there advances by the tenant's share of
the running calls.
"""

from control.jit import compiled
from control.policy.codes import IDLE, IN_DECODE, IN_HOLD, IN_PREEMPTION, IN_PREFILL, IN_QUEUE
from control.twin.world import World


@compiled
def share_now(world: World, i: int, tenant: int) -> float:
    """Share of the calls running on instance `i` that are of `tenant`; 0 when nothing runs."""
    n = world.instances[i]["n_running"]
    if n == 0 or world.instances[i]["run"] == IDLE:
        return 0.0
    own = 0
    for r in range(n):
        if world.calls[world.running[i, r]]["tenant"] == tenant:
            own += 1
    return own / n


@compiled
def meters_now(world: World, i: int, tenant: int) -> tuple[float, float]:
    """Readings at this moment on instance `i`: the meter of `tenant`, and the sum of all other tenants' meters, s."""
    own, other = world.meters[i, tenant], 0.0
    for k in range(world.meters.shape[1]):
        if k != tenant:
            other += world.meters[i, k]
    instance = world.instances[i]
    if instance["run"] == IDLE:
        return own, other
    seconds = world.clock[0]["now_s"] - instance["run_start_s"]
    share = share_now(world, i, tenant)
    return own + seconds * share, other + seconds * (1.0 - share)


@compiled
def advance_meters(world: World, i: int, seconds: float) -> None:
    """Let the meters of the tenants that run on instance `i` advance by their shares of `seconds`."""
    n = world.instances[i]["n_running"]
    for r in range(n):
        world.meters[i, world.calls[world.running[i, r]]["tenant"]] += seconds / n


@compiled
def hold_up(world: World, i: int, ms: float) -> None:
    """Instance `i` begins no iteration for `ms` more, while KV is handed over."""
    instance = world.instances[i]
    instance["ready_s"] = max(world.clock[0]["now_s"], instance["ready_s"]) + ms * 1e-3


@compiled
def begin_waiting(world: World, i: int, c: int) -> None:
    """Call `c` begins to wait on instance `i`."""
    call = world.calls[c]
    call["phase"] = IN_QUEUE
    call["phase_s"] = world.clock[0]["now_s"]
    call["own_mark_s"], call["other_mark_s"] = meters_now(world, i, call["tenant"])


@compiled
def end_phase(world: World, c: int, phase: int) -> None:
    """The phase of call `c` ends now: book it; `phase` begins."""
    call, now_s = world.calls[c], world.clock[0]["now_s"]
    seconds = now_s - call["phase_s"]
    if call["phase"] == IN_QUEUE:
        own, other = meters_now(world, call["instance"], call["tenant"])
        call["queue_own_s"] += own - call["own_mark_s"]
        call["queue_other_s"] += other - call["other_mark_s"]
    elif call["phase"] == IN_PREFILL:
        call["prefill_s"] += seconds
    elif call["phase"] == IN_DECODE:
        call["decode_s"] += seconds
    elif call["phase"] == IN_PREEMPTION:
        call["preempted_s"] += seconds
    elif call["phase"] == IN_HOLD:
        call["hold_s"] += seconds
        call["queue_other_s"] += seconds
    else:
        call["transfer_s"] += seconds
    call["phase"] = phase
    call["phase_s"] = now_s


@compiled
def begin_running(world: World, c: int) -> None:
    """Waiting call `c` is admitted; one that has generated before computes again what a preemption lost."""
    if world.calls[c]["phase"] == IN_QUEUE:
        end_phase(world, c, IN_DECODE if world.calls[c]["emitted"] > 0 else IN_PREFILL)
    elif world.calls[c]["emitted"] == 0:
        end_phase(world, c, IN_PREFILL)


@compiled
def lose_all(world: World, c: int) -> None:
    """The instance of call `c` went down: all its time so far is lost to that failure."""
    call = world.calls[c]
    end_phase(world, c, IN_QUEUE)
    spent_s = call["queue_own_s"] + call["queue_other_s"] + call["prefill_s"] + call["decode_s"]
    call["failure_s"] += spent_s + call["preempted_s"] + call["transfer_s"]
    call["queue_own_s"], call["queue_other_s"], call["hold_s"] = 0.0, 0.0, 0.0
    call["prefill_s"], call["decode_s"], call["preempted_s"], call["transfer_s"] = 0.0, 0.0, 0.0, 0.0
