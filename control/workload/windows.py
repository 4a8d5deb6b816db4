"""A workload in windows of one minute: what arrives in [60 i, 60 (i + 1)) s."""

import numpy as np

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.build import part

#: Length of a window, s.
WINDOW_S = 60.0


def windowed(workload: Workload, index: int) -> Workload:
    """The workflows of an arranged workload that arrive in window `index`; streams keep their numbers.

    Raises SettingError when `index` is below 0.
    """
    if index < 0:
        raise SettingError(f"window = {index}: expected a whole number >= 0")
    edges = (WINDOW_S * index, WINDOW_S * (index + 1))
    first, last = np.searchsorted(workload.workflows["arrival_s"], edges)
    return part(workload, int(first), int(last))


def window_count(workload: Workload) -> int:
    """Number of windows up to the last arrival."""
    arrivals = workload.workflows["arrival_s"]
    return int(arrivals[-1] // WINDOW_S) + 1 if len(arrivals) else 0
