"""The part of the `pynvml` module that is used, over made-up GPUs."""

from types import SimpleNamespace
from typing import Any


class NvmlError(Exception):
    """Base of the library's errors."""


class NoPermissionError(NvmlError):
    """Not root."""


class NotSupportedError(NvmlError):
    """Not on this GPU."""


class FakeNvml:
    """The part of `pynvml` that is used, over GPUs given as dictionaries of what they answer."""

    NVMLError, NVMLError_NoPermission, NVMLError_NotSupported = NvmlError, NoPermissionError, NotSupportedError
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *gpus: dict[str, Any], fails: Exception | None = None) -> None:
        self.gpus, self.fails = gpus, fails
        self.shut = False

    def nvmlInit(self) -> None:  # noqa: N802
        if self.fails:
            raise self.fails

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.shut = True

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:  # noqa: N802
        return self.gpus[index]

    def nvmlDeviceSetPowerManagementLimit(self, gpu: dict[str, Any], milliwatts: int) -> None:  # noqa: N802
        if "refuses" in gpu:
            raise gpu["refuses"]
        gpu["EnforcedPowerLimit"] = milliwatts

    def __getattr__(self, name: str) -> Any:
        def get(gpu: dict[str, Any], *_: Any) -> Any:
            if (key := name.removeprefix("nvmlDeviceGet")) not in gpu:
                raise NotSupportedError("Not Supported")
            return gpu[key]

        return get


def h100(**more: Any) -> dict[str, Any]:
    """What one GPU answers."""
    return {
        "UUID": b"GPU-a",
        "Name": "NVIDIA H100",
        "PowerUsage": 70_120,
        "TotalEnergyConsumption": 5_000_000,
        "EnforcedPowerLimit": 700_000,
        "PowerManagementLimitConstraints": [200_000, 700_000],
        "MemoryInfo": SimpleNamespace(used=3 * 2**30, total=80 * 2**30),
        "UtilizationRates": SimpleNamespace(gpu=98, memory=10),
        "Temperature": 41,
        **more,
    }
