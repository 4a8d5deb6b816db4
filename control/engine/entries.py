"""What is known of a request when it comes, written into the rows that it takes."""

import random

from control.engine import spare
from control.engine.spare import number_of
from control.engine.state import Live
from control.engine.tickets import Identity


def fill_workflow(live: Live, w: int, who: Identity, number: int, goes_on: bool) -> None:
    """Workflow `number` takes row `w`; `goes_on`: more calls may follow."""
    workflow, names = live.world.workflows[w], live.names
    workflow["id"] = number
    workflow["arrival_s"] = live.world.clock[0]["now_s"]
    promised_s = slo_s(live, who)
    workflow["granted"] = promised_s is None
    workflow["slo_s"] = 0.0 if promised_s is None else promised_s
    workflow["tenant"] = number_of(names[1], who.tenant or spare.OTHER)
    workflow["kind"] = number_of(names[0], who.kind or spare.OTHER)
    workflow["go_on"], workflow["open_end"] = 1, goes_on


def slo_s(live: Live, who: Identity) -> float | None:
    """Time to the deadline of a request, s: as given, or its TTFT and the time that its stage usually decodes."""
    if who.slo_s is not None or who.ttft_s is None:
        return who.slo_s
    step = live.world.steps[number_of(live.names[2], who.stage or spare.OTHER)]
    return who.ttft_s + float(step["mean_exec_s"] - step["mean_prefill_s"])


def fill_call(
    live: Live, c: int, w: int, who: Identity, uid: int, tokens: tuple[int, int], draws: random.Random
) -> None:
    """Call `uid` of workflow row `w` takes row `c`; `tokens`: of its context, and what a simulated instance adds."""
    world = live.world
    call = world.calls[c]
    call["uid"] = uid
    call["tenant"] = world.workflows[w]["tenant"]
    call["step"] = number_of(live.names[2], who.stage or spare.OTHER)
    call["input_tokens"], call["output_tokens"] = tokens
    call["draw_a"], call["draw_b"] = draws.random(), draws.random()
    flow = live.flows.get(who.workflow) if who.workflow is not None else None
    continues = flow is not None and who.session is not None and who.session == flow.session
    if call["stream_key"] < 0 or not continues or world.workflows[w]["open_calls"] > 0:
        call["stream_key"] = -1
        return
    pin = world.pins[int(call["stream_key"]) - int(world.clock[0]["n_shared"])]
    call["history_tokens"] = min(int(pin["tokens"]), tokens[0])
