"""What the tuner may look back on: workflows that ended, and states of the world to replay from."""

from collections import deque

from control.engine.state import Live
from control.policy.codes import ACTIVE, DONE
from control.policy.tables import Ints
from control.tuning.episodes import Arrival, Episode, arrival, episode
from control.twin.world import World, fork

KEPT_S = 1800.0  # simulated s
KEPT_EPISODES = 5000
STATE_EVERY_S = 60.0  # simulated s between kept states
KEPT_STATES = 16


class History:
    """Recorded arrivals and contents, and forks of the world at some past moments."""

    def __init__(self) -> None:
        self.ended: deque[Episode] = deque(maxlen=KEPT_EPISODES)
        self.latencies: deque[tuple[float, float]] = deque(maxlen=KEPT_EPISODES)  # arrival, latency of done ones, s
        self.states: deque[tuple[World, Ints]] = deque(maxlen=KEPT_STATES)

    def note(self, live: Live, w: int) -> None:
        """Workflow `w` has ended: keep what was observed of it."""
        workflow = live.world.workflows[w]
        first, n = int(workflow["first_call"]), int(workflow["n_calls"])
        self.ended.append(episode(workflow, live.world.calls[first : first + n]))
        if workflow["state"] == DONE:
            latency_s = float(workflow["finished_s"] - workflow["arrival_s"])
            self.latencies.append((float(workflow["arrival_s"]), latency_s))
        while self.ended and self.ended[0].arrival_s < live.now_s - KEPT_S:
            self.ended.popleft()

    def latencies_since(self, start_s: float) -> list[float]:
        """Latencies of the workflows that arrived after `start_s` and ran to their end, s."""
        return [latency_s for arrival_s, latency_s in self.latencies if arrival_s > start_s]

    def keep_state(self, live: Live) -> None:
        """Keep the state of the world as it is now, if the last one kept is old enough; the journal is drained."""
        last_s = float(self.states[-1][0].clock[0]["now_s"]) if self.states else -STATE_EVERY_S
        if live.now_s - last_s >= STATE_EVERY_S:
            self.states.append((fork(live.world), live.streams.copy()))

    def window(self, live: Live, window_s: float) -> tuple[World, Ints, list[Arrival]] | None:
        """The newest kept state that lies `window_s` back or more (else the oldest), and what arrived since."""
        if not self.states:
            return None
        old = [state for state in self.states if state[0].clock[0]["now_s"] <= live.now_s - window_s]
        world, streams = old[-1] if old else self.states[0]
        start_s = float(world.clock[0]["now_s"])
        arrivals = [Arrival(*e[:5]) for e in self.ended if e.arrival_s > start_s]
        rows = live.world.workflows
        active = rows[(rows["state"] == ACTIVE) & (rows["arrival_s"] > start_s)]
        arrivals += [arrival(row) for row in active]
        return world, streams, sorted(arrivals)
