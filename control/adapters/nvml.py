"""GPUs of this machine through NVML: power, energy, and power limits. Needs root to set a limit."""

import threading
import time
from collections.abc import Callable
from typing import Any

from control.adapters.energy import EnergyMeter
from control.adapters.faults import NoSuchGpuError, NotPermittedError, PowerBoundsError, PowerError
from control.adapters.reading import GpuReading


class LocalGpus:
    """The GPUs that the driver of this machine knows; none, with a reason, where there is no driver.

    Args:
        library: the `pynvml` module; imported where absent.
        clock: monotonic time in s, for energy of GPUs that do not count it.
    """

    def __init__(self, library: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.lock = threading.Lock()  # meters are read and written by whichever thread reads
        self.handles: list[Any] = []
        self.reason: str | None = None
        self.nvml = library if library is not None else import_nvml()
        try:
            self.nvml.nvmlInit()
            count = int(self.nvml.nvmlDeviceGetCount())
            self.handles = [self.nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
            self.reason = None if count else "the driver knows no GPU"
        except self.nvml.NVMLError as error:
            self.reason = f"NVML cannot be used: {error}"
        self.meters = [EnergyMeter() for _ in self.handles]

    def read(self) -> list[GpuReading]:
        """Every GPU now; what a GPU does not tell is None."""
        with self.lock:
            return [self.read_one(index, handle) for index, handle in enumerate(self.handles)]

    def read_one(self, index: int, handle: Any) -> GpuReading:
        """One GPU now."""
        nvml = self.nvml
        power_w = scaled(self.ask("nvmlDeviceGetPowerUsage", handle), 1e-3)
        counter_j = scaled(self.ask("nvmlDeviceGetTotalEnergyConsumption", handle), 1e-3)
        memory = self.ask("nvmlDeviceGetMemoryInfo", handle)
        load = self.ask("nvmlDeviceGetUtilizationRates", handle)
        low_w, high_w = self.bounds_or_none(handle)
        return GpuReading(
            index=index,
            uuid=text(self.ask("nvmlDeviceGetUUID", handle)),
            name=text(self.ask("nvmlDeviceGetName", handle)),
            power_w=power_w,
            power_limit_w=scaled(self.ask("nvmlDeviceGetEnforcedPowerLimit", handle), 1e-3),
            power_limit_min_w=low_w,
            power_limit_max_w=high_w,
            energy_j=self.meters[index].update(self.clock(), power_w, counter_j),
            utilization=scaled(None if load is None else load.gpu, 0.01),
            memory_used_mib=scaled(None if memory is None else memory.used, 1 / 2**20),
            memory_total_mib=scaled(None if memory is None else memory.total, 1 / 2**20),
            temperature_c=scaled(self.ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU), 1.0),
        )

    def ask(self, function: str, *arguments: Any) -> Any:
        """What an NVML call answers; None where this GPU or driver does not support it."""
        try:
            return getattr(self.nvml, function)(*arguments)
        except (self.nvml.NVMLError, AttributeError):
            return None

    def bounds_or_none(self, handle: Any) -> tuple[float | None, float | None]:
        """Lowest and highest power limit in W, where they are known."""
        low_high = self.ask("nvmlDeviceGetPowerManagementLimitConstraints", handle)
        return (None, None) if low_high is None else (low_high[0] * 1e-3, low_high[1] * 1e-3)

    def set_limit(self, index: int, watts: float) -> None:
        """Limit the power of a GPU, in W.

        Raises:
            NoSuchGpuError: there is no such GPU.
            PowerBoundsError: it does not take this limit.
            NotPermittedError: the driver does not allow it, for one that is not root, or on this GPU.
        """
        if not 0 <= index < len(self.handles):
            raise NoSuchGpuError(index, list(range(len(self.handles))))
        handle = self.handles[index]
        low_w, high_w = self.bounds_or_none(handle)
        check_bounds(index, watts, low_w, high_w)
        try:
            self.nvml.nvmlDeviceSetPowerManagementLimit(handle, round(watts * 1000))
        except self.nvml.NVMLError as error:
            refused = (self.nvml.NVMLError_NoPermission, self.nvml.NVMLError_NotSupported)
            kind = NotPermittedError if isinstance(error, refused) else PowerError
            raise kind(f"GPU {index}: the power limit cannot be set: {error}") from error

    def close(self) -> None:
        """Let go of the driver."""
        if self.handles:
            self.ask("nvmlShutdown")


def import_nvml() -> Any:
    """The `pynvml` module of the package nvidia-ml-py."""
    import pynvml

    return pynvml


def check_bounds(gpu: int | str, watts: float, low_w: float | None, high_w: float | None) -> None:
    """Refuse a limit that is no positive number or lies outside what the GPU takes.

    Raises:
        PowerBoundsError: it does.
    """
    low, high = low_w or 1.0, high_w if high_w is not None else float("inf")
    if not (low <= watts <= high and 0 < watts < float("inf")):
        raise PowerBoundsError(gpu, watts, low, high)


def scaled(value: Any, factor: float) -> float | None:
    """A raw figure in our unit; None stays None."""
    return None if value is None else float(value) * factor


def text(value: Any) -> str | None:
    """A name; older bindings give bytes."""
    return value.decode() if isinstance(value, bytes) else value
