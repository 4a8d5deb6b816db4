"""How long runs ahead may go on: until somebody asks for their end, or until they have taken too long."""

from collections.abc import Callable
from time import monotonic

from control.errors import SettingError

SETTING_S = 60.0  # wall s after which an engine gives up a setting: others wait behind it


class StoppedError(Exception):
    """Somebody asked for the runs ahead to end."""


class Patience:
    """Asked between the pieces of one setting's work, from several threads."""

    def __init__(self, should_stop: Callable[[], bool], most_s: float, pieces: int) -> None:
        self.should_stop, self.most_s, self.pieces = should_stop, most_s, pieces
        self.begun_s, self.done = monotonic(), 0

    def look(self) -> None:
        """Before another piece of work.

        Raises:
            StoppedError: nobody waits for it any more.
            SettingError: all pieces together take longer than they may.
        """
        if self.should_stop():
            raise StoppedError
        if monotonic() - self.begun_s > self.most_s:
            share = min(99.0, 100.0 * self.done / self.pieces)
            raise SettingError(
                f"too much work ahead: {share:.0f} % of it done after {self.most_s:g} s; ask for fewer minutes or "
                "seeds, or for less load"
            )
        self.done += 1
