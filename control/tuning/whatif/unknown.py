"""What nobody knows of calls under way: how long their answers will be. Drawn, never looked up."""

from collections.abc import Sequence

import numpy as np

from control.metrics.stages import UNDER_WAY
from control.policy.codes import ACTIVE, DECODE, DECODING, PLANNED
from control.policy.tables import Ints
from control.tuning.episodes import Episode
from control.twin.batching import cut_run
from control.twin.observe import emitted_by
from control.twin.world import World


def lengths_by_step(contents: Sequence[Episode], n_steps: int) -> list[Ints]:
    """Output tokens of the recorded calls of each step, sorted."""
    if not contents:
        return [np.zeros(0, np.int64)] * n_steps
    steps = np.concatenate([content.calls["step"] for content in contents])
    outputs = np.concatenate([content.calls["output_tokens"] for content in contents])
    return [np.sort(outputs[steps == k]).astype(np.int64) for k in range(n_steps)]


def draw_unknown(world: World, lengths: Sequence[Ints], rng: np.random.Generator) -> None:
    """Give every open or planned call of an active workflow an output length drawn from its step's.

    A call that has emitted e tokens gets one of the recorded lengths beyond e; where there is none, one token more.
    Decode runs under way end at their next iteration: the end they were planned for was known from the true length.
    How many calls follow, and their tool times, stay as the world has them.
    """
    now_s = float(world.clock[0]["now_s"])
    active = world.workflows["state"] == ACTIVE
    is_open = np.isin(world.calls["state"], (*UNDER_WAY, PLANNED)) & active[world.calls["workflow"]]
    rows = np.flatnonzero(is_open)
    for c, u in zip(rows.tolist(), rng.random(len(rows)).tolist(), strict=True):
        call = world.calls[c]
        emitted = int(emitted_by(world, c, now_s)) if call["state"] == DECODE else int(call["emitted"])
        set_length(world, c, drawn(lengths[int(call["step"])], emitted, u, int(call["output_tokens"])), emitted)
    for i in np.flatnonzero(world.instances["run"] == DECODING).tolist():
        cut_run(world, i, now_s)


def drawn(lengths: Ints, emitted: int, u: float, otherwise: int) -> int:
    """The length at `u` in [0, 1) among those above `emitted`; `otherwise` where the step has no record at all."""
    if not len(lengths):
        return max(otherwise, emitted + 1)
    first = int(np.searchsorted(lengths, emitted, side="right"))
    if first == len(lengths):
        return emitted + 1
    return int(lengths[first + int(u * (len(lengths) - first))])


def set_length(world: World, c: int, tokens: int, emitted: int) -> None:
    """Let call `c` generate `tokens` tokens in all, as far as its context allows."""
    call = world.calls[c]
    call["output_tokens"] = tokens
    if call["state"] == PLANNED:
        return
    longest = int(world.instances[max(0, int(call["instance"]))]["max_model_len"])
    room = max(longest - int(call["input_tokens"]), emitted + 1)
    call["limit"] = tokens if call["handoff"] == 1 else min(tokens, room)
