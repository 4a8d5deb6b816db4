"""What the tuner may look back on: workflows that ended, and states of the world to replay from."""

from collections import deque
from typing import NamedTuple

import numpy as np

from control.engine.books import EndedWorkflows
from control.engine.state import Live
from control.policy.codes import ACTIVE, DONE, FUTURE
from control.policy.tables import Floats, Ints
from control.tuning.episodes import Arrival, Episode, arrival, episode, episodes
from control.twin.world import World, fork, silent

KEPT_S = 1800.0  # simulated s
LEAST_KEPT = 200  # workflows kept however old they are: under overload even the newest to end arrived long ago
KEPT_EPISODES = 5000
STATE_EVERY_S = 120.0  # simulated s between kept states
KEPT_STATES = 8


class Recorded(NamedTuple):
    """A state of the past and what has arrived since; workflows that have ended come with their calls."""

    state: World
    streams: Ints
    arrivals: list[Arrival | Episode]


class History:
    """Recorded arrivals and contents, and forks of the world at some past moments."""

    def __init__(self) -> None:
        self.ended: deque[Episode] = deque(maxlen=KEPT_EPISODES)
        self.latencies: deque[tuple[float, float]] = deque(maxlen=KEPT_EPISODES)  # arrival, latency of done ones, s
        self.states: deque[tuple[World, Ints]] = deque(maxlen=KEPT_STATES)
        self.began_s: float | None = None  # what arrived before is not on record, simulated s
        self.held: tuple[World, Ints] | None = None  # kept however old: the last change of alpha is judged from it

    def note(self, ended: EndedWorkflows, now_s: float) -> None:
        """Workflows have ended: keep what was observed of them."""
        self.ended.extend(episodes(ended.workflows[-KEPT_EPISODES:], ended.calls))
        done = ended.workflows[ended.workflows["state"] == DONE]
        latencies_s = done["finished_s"] - done["arrival_s"]
        self.latencies.extend(zip(done["arrival_s"].tolist(), latencies_s.tolist(), strict=True))
        while len(self.ended) > LEAST_KEPT and self.ended[0].arrival_s < now_s - KEPT_S:
            self.ended.popleft()

    def latencies_since(self, start_s: float) -> list[float]:
        """Latencies of the workflows that arrived after `start_s` and ran to their end, s."""
        return [latency_s for arrival_s, latency_s in self.latencies if arrival_s > start_s]

    def keep_state(self, live: Live) -> None:
        """Keep the state of the world as it is now, if the last one kept is old enough; the journal is drained."""
        last_s = clock_s(self.states[-1]) if self.states else -STATE_EVERY_S
        self.began_s = live.now_s if self.began_s is None else self.began_s
        if live.now_s - last_s >= STATE_EVERY_S:
            self.states.append((fork(silent(live.world)), live.streams.copy()))

    @property
    def mean_calls(self) -> float:
        """Calls a recorded workflow has on average."""
        return sum(len(e.calls) for e in self.ended) / len(self.ended) if self.ended else 0.0

    def window(self, live: Live, window_s: float, least_calls: int) -> Recorded | None:
        """What has come since the newest kept state that lies `window_s` back or more.

        With fewer than about `least_calls` calls since then, an older state; the oldest there is where none will do.
        """
        chosen, times_s, mean_calls = None, self.arrivals_s(live), self.mean_calls
        for state in reversed(self.states):
            calls = np.count_nonzero(times_s > clock_s(state)) * mean_calls
            chosen = state
            if clock_s(state) <= live.now_s - window_s and calls >= least_calls:
                break
        return None if chosen is None else self.since(live, chosen)

    def arrivals_s(self, live: Live) -> Floats:
        """When the workflows on record arrived, those still active included, s; in no order."""
        rows = live.world.workflows
        ended = np.fromiter((e.arrival_s for e in self.ended), np.float64, len(self.ended))
        return np.concatenate([ended, rows["arrival_s"][rows["state"] == ACTIVE]])

    def hold(self) -> None:
        """Keep the newest state until another one is held."""
        self.held = self.states[-1] if self.states else None

    def after(self, live: Live, time_s: float) -> Recorded | None:
        """What has come since the newest kept state that is no later than `time_s`."""
        states = [self.held, *self.states] if self.held else self.states
        old = [state for state in states if clock_s(state) <= time_s]
        return self.since(live, old[-1]) if old else None

    def exactly(self, live: Live, time_s: float) -> Recorded | None:
        """What has come since the newest kept state from before `time_s`.

        Of simulated work also what is still to end or to arrive, whose calls are known.
        """
        found = self.after(live, float(np.nextafter(time_s, -np.inf)))
        if found is None or live.source.is_gateway:
            return found
        rows, start_s = live.world.workflows, float(found.state.clock[0]["now_s"])
        is_open = np.isin(rows["state"], (ACTIVE, FUTURE)) & (rows["arrival_s"] > start_s)
        known = [a for a in found.arrivals if isinstance(a, Episode)]
        for row in rows[is_open]:
            first = int(row["first_call"])
            known.append(episode(row, live.world.calls[first : first + int(row["n_calls"])]))
        return found._replace(arrivals=sorted(known, key=lambda a: a.arrival_s))

    def calls(self, recorded: Recorded) -> int:
        """Calls of a record, about: those of workflows that have not ended are not known."""
        return int(len(recorded.arrivals) * self.mean_calls)

    def since(self, live: Live, state: tuple[World, Ints]) -> Recorded:
        """A kept state and what has arrived since."""
        start_s, rows = clock_s(state), live.world.workflows
        arrived: list[Arrival | Episode] = [e for e in self.ended if e.arrival_s > start_s]
        active = rows[(rows["state"] == ACTIVE) & (rows["arrival_s"] > start_s)]
        arrived += [arrival(row) for row in active]
        return Recorded(*state, sorted(arrived, key=lambda a: a.arrival_s))


def clock_s(state: tuple[World, Ints]) -> float:
    """Simulated time of a kept state, s."""
    return float(state[0].clock[0]["now_s"])
