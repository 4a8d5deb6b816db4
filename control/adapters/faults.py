"""What can go wrong with a source of metrics or power.

InputError
├── MetricsError          a metrics text or its source cannot be read
└── PowerError            a power limit cannot be read or set
    ├── NoSuchGpuError        there is no GPU of that number or UUID
    ├── PowerBoundsError      the limit lies outside what the GPU accepts
    └── NotPermittedError     the driver, the agent or the kind of source does not allow it
"""

from control.errors import InputError


class MetricsError(InputError):
    """A metrics text or its source cannot be read: names the source and what was expected."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what


class PowerError(InputError):
    """A power limit cannot be read or set."""


class NoSuchGpuError(PowerError):
    """There is no GPU of that number or UUID."""

    def __init__(self, gpu: int | str, known: list[int]) -> None:
        there = f"expected one of {', '.join(map(str, known))}" if known else "this host has none"
        super().__init__(f"GPU {gpu}: no such GPU: {there}")
        self.gpu, self.known = gpu, known


class PowerBoundsError(PowerError):
    """The limit lies outside what the GPU accepts."""

    def __init__(self, gpu: int | str, watts: float, low_w: float, high_w: float) -> None:
        super().__init__(f"GPU {gpu}: watts = {watts:g}: expected a number from {low_w:g} to {high_w:g}")
        self.gpu, self.watts, self.low_w, self.high_w = gpu, watts, low_w, high_w


class NotPermittedError(PowerError):
    """The driver, the agent or the kind of source does not allow it; the message says why."""
