"""Shadow policies: the same arrivals, from one moment on, under other policies, all the time.

A shadow is a copy of the live state under another policy. It moves on another thread, a little behind; whatever an
operator does to the fleet is done to it too, at the same simulated time.
"""

import copy
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from control.engine.books import Books
from control.engine.orders import obey
from control.engine.outcome import Outcome, value
from control.engine.record import live_on
from control.engine.rolling import Meter
from control.engine.state import Live
from control.errors import SettingError, shown
from control.metrics.slo import overdue_s
from control.policy.codes import POLICIES, policy_codes
from control.twin.acts import change_policy
from control.twin.world import fork

log = logging.getLogger("headway.engine")

Row = dict[str, Any]
MOST = 3
MIRRORED = ("kill", "revive", "drain", "undrain", "power_cap", "power_caps", "load_scale", "cancel", "slow")
MOST_STEP_S = 120.0  # simulated s that one piece of work makes up: what was told must not grow old


class Shadows:
    """The shadows of one live fleet."""

    def __init__(self) -> None:
        self.lives: list[Live] = []
        self.told: list[Row] | None = None
        self.commands: deque[tuple[float, Mapping[str, Any]]] = deque()
        self.future: Future[None] | None = None
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="shadows")

    def obey(self, live: Live, command: Mapping[str, Any]) -> Outcome:
        """The command that chooses the shadows; the live journal must be drained."""
        try:
            names = value(command, "policies")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise SettingError(f"policies = {shown(names)}: expected a list of policies")
            return self.choose(live, names)
        except SettingError as error:
            return Outcome(False, str(error))

    def choose(self, live: Live, names: Sequence[str]) -> Outcome:
        """Begin shadows of these policies from the live state as it is now; none: end them all.

        Raises:
            SettingError: a policy is not known, or the fleet serves real requests.
        """
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if name not in POLICIES:
                raise SettingError(f"policies: {name!r:.40}: expected some of {', '.join(POLICIES)}")
        if len(wanted) > MOST:
            raise SettingError(f"policies: {len(wanted)} named: at most {MOST} run in the shadow")
        if wanted and live.source.is_gateway:
            raise SettingError("shadows: what a client would have sent under another policy is not known")
        self.end()
        self.lives = [shadow_of(live, name) for name in wanted]
        self.told = [figures(one) for one in self.lives] or None
        text = f"shadow policies: {', '.join(wanted)}" if wanted else "shadow policies ended"
        event = {"kind": "shadows", "target": None, "text": text, "old": None, "new": wanted}
        return Outcome(True, "", event)

    def mirror(self, command: Mapping[str, Any], at_s: float) -> None:
        """A command was applied to the live fleet at `at_s`."""
        if self.lives and command["kind"] in MIRRORED:
            self.commands.append((at_s, {**command, "expected": None}))

    def follow(self, now_s: float) -> str:
        """Have the shadows come to `now_s`, unless they are on their way; why they must end, "" where they need not."""
        if not self.lives or (self.future is not None and not self.future.done()):
            return ""
        error = None if self.future is None else self.future.exception()
        if error is not None:  # the fleet is run on, whatever becomes of its shadows
            log.error("a shadow failed", exc_info=error)
            return f"internal error: {type(error).__name__}"
        self.future = self.pool.submit(self.work, now_s)
        return ""

    def work(self, now_s: float) -> None:
        """Move every shadow to `now_s`, through the commands on the way."""
        now_s = min(now_s, min(one.now_s for one in self.lives) + MOST_STEP_S)
        while self.commands and self.commands[0][0] <= now_s:
            at_s, command = self.commands.popleft()
            for one in self.lives:
                live_on(one, at_s)
                obey(one, command)
        for one in self.lives:
            live_on(one, now_s)
        self.told = [figures(one) for one in self.lives]

    def wait(self) -> None:
        """Until nothing moves."""
        if self.future is not None:
            self.future.result()
        self.future = None

    @property
    def names(self) -> list[str]:
        """The policies that run in the shadow."""
        return [one.policy for one in self.lives]

    def end(self) -> None:
        """Forget them all."""
        if self.future is not None:
            self.future.exception()
        self.future = None
        self.commands.clear()
        self.lives, self.told = [], None

    def close(self) -> None:
        """End with what is under way."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def ended(names: Sequence[str], why: str) -> Row:
    """The event of shadows that end without having been asked to."""
    text = f"shadows ended: {why}"
    return {"kind": "shadows", "target": None, "text": text, "old": list(names), "new": []}


def shadow_of(live: Live, policy: str) -> Live:
    """A copy of the live state, its journal drained, under another policy."""
    one = copy.copy(live)
    one.world, one.streams = fork(live.world._replace(receipts=live.world.receipts[:0])), live.streams.copy()
    one.rolling, one.switches = copy.deepcopy(live.rolling), list(live.switches)
    one.books = Books(live.names[1], live.names[2], [spec.name for spec in live.fleet.instances])
    one.broken, one.flows, one.guard, one.policy = {}, {}, None, policy
    codes = policy_codes(policy, live.source.form)
    change_policy(one.world, codes.dispatch, codes.queue)
    return one


def figures(one: Live) -> Row:
    """What is told of a shadow: P95 (s), attainment and debt (s) as of the live fleet, and its simulated time (s)."""
    one.rolling.read(Meter(one.now_s, 0.0, 0, 0))
    return {
        "policy": one.policy,
        "alpha": one.alpha,
        "p95_s": one.rolling.percentile_s(95),
        "slo_attainment": one.rolling.attainment(),
        "slo_debt_s": float(overdue_s(one.world.workflows, one.now_s).sum()),
        "throughput_wps": one.rolling.throughput_wps(one.now_s),
        "sim_s": one.now_s,
    }
