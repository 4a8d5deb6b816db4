"""The figures of ConServe's evaluation, to set beside ours (ConServe, section 6)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

RATES: Final = (0.5, 0.75, 1.0, 1.25, 1.5, 1.634)  # conversations/s
SATURATING: Final = 1.634  # of these, the one that saturates the prefiller
AMPD_ERROR: Final = 10.0  # per cent of wrong turns in the tables by rate

#: Conversations, turns and full-context tokens of the trace that the figures belong to, and the seed of its arrivals.
TRACE: Final = (255, 1275, 20_114_359)
SEED: Final = 42
TURNS: Final = 5


class Cell(NamedTuple):
    """A figure of the paper. Latencies in units of standalone, violations in per cent, tokens per joule."""

    table: str  # which table of section 6
    policy: str
    rate: float  # conversations/s
    caps: str  # W of the prefiller / of the others
    error: float | None  # per cent of wrong turns under ampd
    figure: str
    value: float


_BY_RATE: Final = {
    ("ttfet_gmean", "collocated"): (1.15, 1.27, 1.66, 2.07, 2.56, 2.93),
    ("ttfet_gmean", "ampd"): (1.21, 1.37, 1.83, 2.24, 2.55, 3.13),
    ("ttfet_gmean", "conserve"): (1.18, 1.33, 1.77, 2.11, 2.39, 2.53),
    ("ttfet_p95", "collocated"): (1.34, 1.62, 2.44, 3.61, 4.55, 5.56),
    ("ttfet_p95", "ampd"): (1.38, 1.79, 2.69, 3.78, 4.31, 8.30),
    ("ttfet_p95", "conserve"): (1.32, 1.76, 2.61, 3.57, 3.94, 4.06),
    ("tbt_p95", "collocated"): (1.22, 1.64, 2.36, 3.30, 5.50, 7.53),
    ("tbt_p95", "ampd"): (1.39, 1.88, 2.95, 4.10, 4.39, 4.30),
    ("tbt_p95", "conserve"): (1.38, 1.86, 2.94, 4.00, 4.33, 4.43),
    ("e2e_p95", "collocated"): (1.34, 1.62, 2.42, 3.53, 4.55, 5.56),
    ("e2e_p95", "ampd"): (1.35, 1.78, 2.73, 3.79, 4.16, 6.76),
    ("e2e_p95", "conserve"): (1.32, 1.76, 2.63, 3.60, 4.04, 4.23),
}

_TOKENS_PER_JOULE: Final = {
    ("collocated", "300/300"): (46.46, 53.36, 57.65, 59.02, 61.15, 61.13),
    ("ampd", "300/300"): (47.65, 54.43, 57.71, 59.03, 61.51, 60.88),
    ("conserve", "300/300"): (47.54, 54.84, 58.72, 60.65, 62.20, 64.72),
    ("collocated", "300/200"): (48.89, 59.08, 66.04, 70.97, 68.09, 70.85),
    ("ampd", "300/200"): (50.83, 63.58, 71.29, 74.29, 75.51, 76.86),
    ("conserve", "300/200"): (51.23, 64.07, 72.30, 76.31, 79.13, 81.05),
}

_AT_SATURATION: Final = {
    ("violations.ttfet", "300/300"): {"collocated": 17.65, "ampd": 13.33, "conserve": 0.0},
    ("violations.tbt", "300/300"): {"collocated": 26.67, "ampd": 0.0, "conserve": 0.0},
    ("violations.e2e", "300/300"): {"collocated": 19.61, "ampd": 10.20, "conserve": 0.0},
    ("tokens_per_joule_idle_billed", "300/300"): {"collocated": 61.14, "ampd": 57.68, "conserve": 62.01},
    ("tokens_per_joule_idle_billed", "300/200"): {"collocated": 70.85, "ampd": 71.84, "conserve": 76.12},
}

_SWEEP: Final = {
    "ttfet_p95": (4.06, 6.09, 8.30, 8.33, 9.17, 11.06, 11.09, 12.79, 12.85, 13.70, 13.71),
    "violations.ttfet": (0.0, 7.84, 13.33, 21.57, 25.10, 34.51, 38.82, 41.96, 45.49, 49.41, 52.94),
    "tokens_per_joule": (64.72, 62.33, 60.88, 62.63, 61.02, 61.01, 60.53, 58.93, 58.68, 58.49, 57.93),
}

#: What the paper gives for full disaggregation: the lowest and highest over the rates.
FULL_DISAGG: Final = {"ttfet_p95": (53.6, 104.7), "violations.ttfet": (95.0, 99.0), "tokens_per_joule": (30.0, 31.0)}

#: Cells that the A40's power was fitted on; every other energy of the paper tests it.
FITTED: Final = frozenset(
    {
        ("conserve", 0.5, "300/300", "tokens_per_joule"),
        ("conserve", SATURATING, "300/300", "tokens_per_joule"),
        ("conserve", SATURATING, "300/200", "tokens_per_joule"),
    }
)


def cells() -> Iterator[Cell]:
    """Every figure of the paper, AMPD's sweep last."""
    for (figure, policy), values in _BY_RATE.items():
        for rate, value in zip(RATES, values, strict=True):
            yield Cell(figure, policy, rate, "300/300", error_of(policy), figure, value)
    for (policy, caps), values in _TOKENS_PER_JOULE.items():
        for rate, value in zip(RATES, values, strict=True):
            yield Cell("tokens_per_joule", policy, rate, caps, error_of(policy), "tokens_per_joule", value)
    for (figure, caps), by_policy in _AT_SATURATION.items():
        for policy, value in by_policy.items():
            yield Cell("saturation", policy, SATURATING, caps, error_of(policy), figure, value)
    for figure, by_error in _SWEEP.items():
        for k, value in enumerate(by_error):
            if 5.0 * k != AMPD_ERROR:
                yield Cell("error_sweep", "ampd", SATURATING, "300/300", 5.0 * k, figure, value)


def error_of(policy: str) -> float | None:
    """Per cent of wrong turns in the tables by rate: AMPD's, None for a policy that predicts nothing."""
    return AMPD_ERROR if policy == "ampd" else None
