"""Which tenant a generated workflow belongs to."""

import numpy as np
import numpy.typing as npt

from control.errors import SettingError


def assign_tenants(workflows: npt.NDArray[np.void], tenants: tuple[str, ...], slo_scales: tuple[float, ...]) -> None:
    """Give workflows to `tenants` in turn, each with its SLO scale. Raises SettingError."""
    if not tenants or len(tenants) != len(slo_scales):
        what = f"{len(tenants)} tenants with {len(slo_scales)} SLO scales"
        raise SettingError(f"{what}: expected one scale for each of at least one tenant")
    if min(slo_scales) <= 0:
        raise SettingError(f"slo_scale = {min(slo_scales)}: expected a number > 0")
    workflows["tenant"] = np.arange(len(workflows)) % len(tenants)
    workflows["slo_scale"] = np.array(slo_scales)[workflows["tenant"]]
