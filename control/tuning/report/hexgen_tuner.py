"""HexGen-Flow's tuning of alpha, live: a load step lived through with the tuner and without, in both score forms."""

from typing import Final

from control.policy.codes import FORMS
from control.tuning.report.base import Inputs, Row
from control.tuning.report.markdown import Section, fixed, plural, signed_percent, table

SCENARIO: Final = "step-load"
MINUTES: Final = 40  # of arrivals, simulated
ALPHA: Final = 0.5  # at the start, and of the fixed run
SEEDS_A_SEED: Final = 2  # rehearsals to a seed of the other experiments: a run of the tuner is a single draw


def rehearsals(inputs: Inputs) -> Row | None:
    """Auto mode beside the fixed alpha, by form and seed; None where nothing can live through a scenario."""
    if inputs.rehearse is None:
        return None
    runs = {}
    for form in reversed(FORMS):
        runs[form] = [
            inputs.rehearse(SCENARIO, form, MINUTES, seed, ALPHA) for seed in range(SEEDS_A_SEED * inputs.seeds)
        ]
        inputs.say(f"HexGen-Flow, live tuner: {form} form done")
    return {"scenario": SCENARIO, "minutes": MINUTES, "alpha": ALPHA, "runs": runs}


def tuner_section(found: Row) -> Section:
    """What the tuner gained and where it did not."""
    blocks = [
        f"Scenario {found['scenario']}: {found['minutes']} minutes of arrivals, then until the last workflow has "
        f"ended, lived through by the engine's own loop with alpha fixed at {found['alpha']:g} and again in auto mode, "
        "on the same arrivals. P95 is that of all workflows."
    ]
    for form, runs in found["runs"].items():
        blocks += [_verdict(form, runs, found["alpha"]), _table(runs)]
    return Section(3, "The live tuner on a load step", tuple(blocks))


def _verdict(form: str, runs: list[Row], alpha: float) -> str:
    gained, moved = sum(run["gain"] > 0.0 for run in runs), sum(bool(run["moves"]) for run in runs)
    mean = sum(run["gain"] for run in runs) / len(runs)
    return (
        f"*{form.capitalize()} form.* Auto mode moved alpha in {moved} of {plural(len(runs), 'seed')} and had a lower "
        f"P95 than alpha {alpha:g} in {gained}; P95 changed by {signed_percent(-mean, 1)} on average."
    )


def _table(runs: list[Row]) -> str:
    rows = []
    for run in runs:
        moves = ", ".join(f"{m['alpha']:.2f} at {m['at_s'] / 60.0:.0f} min" for m in run["moves"]) or "unchanged"
        figures = [fixed(run["fixed_p95_s"], 0), fixed(run["auto_p95_s"], 0), signed_percent(-run["gain"], 1)]
        rows.append([str(run["seed"]), moves, f"{run['workflows']:,}", *figures])
    head = ["seed", "alpha over time", "workflows", "P95 s, fixed", "P95 s, auto", "change"]
    return table(head, rows, names=2)
