"""How long runs ahead may go on: until somebody asks for their end, or until they have taken too long."""

from collections.abc import Callable
from time import monotonic

from control.errors import SettingError

SETTING_S = 60.0  # wall s after which an engine gives up a setting: others wait behind it


class StoppedError(Exception):
    """Somebody asked for the runs ahead to end."""


class Patience:
    """Asked between the pieces of one setting's work, from several threads; `whole_s` is all of it, simulated s."""

    def __init__(self, should_stop: Callable[[], bool], most_s: float, whole_s: float) -> None:
        self.should_stop, self.most_s, self.whole_s = should_stop, most_s, whole_s
        self.begun_s, self.done_s = monotonic(), 0.0

    def look(self, ran_s: float = 0.0) -> None:
        """Between two pieces of work; `ran_s` (simulated s) have been run since the last question.

        Raises:
            StoppedError: nobody waits for it any more.
            SettingError: all pieces together take longer than they may.
        """
        self.done_s += ran_s
        if self.should_stop():
            raise StoppedError
        if monotonic() - self.begun_s > self.most_s:
            share = min(99.0, 100.0 * self.done_s / self.whole_s)
            raise SettingError(
                f"too much work ahead: {share:.0f} % of it done after {self.most_s:g} s; ask for fewer minutes or "
                "seeds, or for less load"
            )
