"""Least squares with non-negative coefficients (Lawson and Hanson, Solving Least Squares Problems, chapter 23)."""

import numpy as np

from control.model.profile import Floats

TINY = 1e-10


def nnls(matrix: Floats, target: Floats) -> Floats:
    """x >= 0 that minimises |matrix x - target|. Columns are scaled to equal length first."""
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0.0] = 1.0
    a = matrix / scale
    n = a.shape[1]
    x, free = np.zeros(n), np.zeros(n, bool)
    for _ in range(3 * n):
        gain = a.T @ (target - a @ x)
        gain[free] = -np.inf
        if gain.max(initial=-np.inf) <= TINY:
            break
        free[int(gain.argmax())] = True
        x = _inside(a, target, x, free)
    return np.asarray(x / scale, np.float64)


def _inside(a: Floats, target: Floats, x: Floats, free: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """The best x over the free columns, after those that would turn negative have been bound to 0 again."""
    while free.any():
        best = np.zeros_like(x)
        best[free] = np.linalg.lstsq(a[:, free], target, rcond=None)[0]
        if best[free].min() > 0.0:
            return best
        down = free & (best <= 0.0)
        step = float(np.min(x[down] / (x[down] - best[down] + TINY)))
        x = x + step * (best - x)
        free &= x > TINY
        x[~free] = 0.0
    return np.zeros_like(x)
