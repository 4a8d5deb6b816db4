"""What nobody knows of calls under way: how long their answers will be. Drawn, never looked up."""

from collections.abc import Sequence

import numpy as np

from control.metrics.stages import UNDER_WAY
from control.policy.codes import ACTIVE, DECODE, DECODING, PLANNED
from control.policy.tables import Floats, Ints
from control.twin.batching import cut_run
from control.twin.observe import emitted_by
from control.twin.world import World


def draw_unknown(world: World, lengths: Sequence[Ints], rng: np.random.Generator) -> None:
    """Give every open or planned call of an active workflow an output length drawn from its step's [steps], tokens.

    A call that has emitted e tokens gets one of the recorded lengths beyond e; where there is none, one token more.
    Decode runs under way end at their next iteration: the end they were planned for was known from the true length.
    How many calls follow, and their tool times, stay as the world has them.
    """
    now_s, calls = float(world.clock[0]["now_s"]), world.calls
    active = world.workflows["state"] == ACTIVE
    rows = np.flatnonzero(np.isin(calls["state"], (*UNDER_WAY, PLANNED)) & active[calls["workflow"]])
    emitted = calls["emitted"][rows]
    for k in np.flatnonzero(calls["state"][rows] == DECODE).tolist():
        emitted[k] = emitted_by(world, int(rows[k]), now_s)
    tokens = drawn(lengths, calls["step"][rows], emitted, rng.random(len(rows)), calls["output_tokens"][rows])
    calls["output_tokens"][rows] = tokens
    longest = world.instances["max_model_len"][np.maximum(calls["instance"][rows], 0)]
    room = np.maximum(longest - calls["input_tokens"][rows], emitted + 1)
    calls["limit"][rows] = np.where(calls["handoff"][rows] == 1, tokens, np.minimum(tokens, room))
    for i in np.flatnonzero(world.instances["run"] == DECODING).tolist():
        cut_run(world, i, now_s)


def drawn(lengths: Sequence[Ints], steps: Ints, emitted: Ints, u: Floats, otherwise: Ints) -> Ints:
    """Lengths at `u` in [0, 1) among those of each call's step above what it emitted, tokens.

    `otherwise` stands where the step has no record at all.
    """
    tokens = np.maximum(otherwise, emitted + 1)
    for step in np.unique(steps).tolist():
        known, mine = lengths[step], np.flatnonzero(steps == step)
        if not len(known):
            continue
        first = np.searchsorted(known, emitted[mine], side="right")
        place = first + (u[mine] * (len(known) - first)).astype(np.int64)
        beyond = first >= len(known)
        tokens[mine] = np.where(beyond, emitted[mine] + 1, known[np.minimum(place, len(known) - 1)])
    return tokens
