"""HexGen-Flow in the full twin: every policy over rates and seeds, where it loses, and alpha curves."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, NamedTuple

from control.model.fleet import Fleet, load_fleet, profile_of
from control.model.workload import Workload
from control.policy.codes import POLICIES
from control.tuning.alpha import GRID
from control.tuning.offline import tune
from control.tuning.report.base import FIGURES, Figure, Inputs, Row, mean_of, spread
from control.tuning.report.hexgen_replays import SUBJECT
from control.tuning.run import over, run
from control.workload.arrivals import arrange

TUNED: Final = "hexgen, alpha tuned"
DEFAULT_ALPHA: Final = 0.5

TWIN_FLEETS: Final = ("hexgen-hetero-1", "hexgen-hetero-2")
TWIN_RATES: Final = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)  # workflows/s

#: Means closer than this count as equal: a relative difference, or one of shares.
LEAST_DIFFERENCE: Final = 0.001


class Variant(NamedTuple):
    """A line of a table: a policy with its alpha."""

    name: str
    policy: str
    alpha: float


def variants(tuned: float) -> list[Variant]:
    """HexGen-Flow with the default alpha and with the tuned one, then every other policy with the default."""
    others = [Variant(name, name, DEFAULT_ALPHA) for name in POLICIES if name != SUBJECT]
    return [Variant(SUBJECT, SUBJECT, DEFAULT_ALPHA), Variant(TUNED, SUBJECT, tuned), *others]


def tuned_alpha(work: Workload, fleet: Fleet, window_s: float = inf) -> float:
    """The alpha that `tune` chooses on the last `window_s` of an arranged workload."""
    return float(tune(work, fleet, SUBJECT, DEFAULT_ALPHA, window_s=window_s)["alpha"])


def twin(inputs: Inputs) -> Row:
    """Every policy and the alpha curve, by fleet and rate, over seeds; alpha is tuned on arrivals of a seed apart."""
    rows, curve = [], []
    for name in TWIN_FLEETS:
        fleet = load_fleet(name)
        for rate in TWIN_RATES:
            works = [arrange(inputs.work, rate=rate, seed=seed) for seed in range(inputs.seeds + 1)]
            where = {"fleet": name, "rate": rate}
            chosen = variants(tuned_alpha(works.pop(), fleet))
            rows += [where | over_seeds(works, fleet, variant) for variant in chosen]
            grid = [Variant(SUBJECT, SUBJECT, alpha) for alpha in GRID]
            curve += [where | over_seeds(works, fleet, variant) for variant in grid]
            inputs.say(f"HexGen-Flow, full twin: {name} at {rate:g} workflows/s done")
    return {
        "costs": [cost_source(load_fleet(name)) for name in TWIN_FLEETS],
        "runs": rows,
        "curve": curve,
        "gains": gains(rows),
        "losses": losses(rows),
    }


def cost_source(fleet: Fleet) -> Row:
    """Where each GPU's costs of a fleet come from: measured, fitted or estimated."""
    found = {spec.gpu: profile_of(spec) for spec in fleet.instances}
    return {"fleet": fleet.name, "provenance": {gpu: costs.provenance for gpu, costs in found.items()}}


def over_seeds(works: Sequence[Workload], fleet: Fleet, variant: Variant) -> Row:
    """One policy on the arrivals of every seed: the spread of each figure, and workflows that did not end well."""
    runs = [run(work, fleet, variant.policy, seed, variant.alpha) for seed, work in enumerate(works)]
    return {
        **variant._asdict(),
        **{figure.key: spread([one[figure.key] for one in runs]) for figure in FIGURES},
        "broken": sum(one["workflows"] - one["workflows_done"] for one in runs),
    }


def gains(rows: Sequence[Row]) -> list[Row]:
    """What hexgen's two lines gain over every other policy at the same fleet and rate: factors of the means."""
    found = []
    for subject in (row for row in rows if row["policy"] == SUBJECT):
        for other in _others(rows, subject):
            p95 = over(mean_of(other, "p95_s"), mean_of(subject, "p95_s"))
            wps = over(mean_of(subject, "throughput_wps"), mean_of(other, "throughput_wps"))
            which = {"fleet": subject["fleet"], "rate": subject["rate"], "name": subject["name"], "over": other["name"]}
            found.append(which | {"p95_gain": p95, "throughput_gain": wps})
    return found


def losses(rows: Sequence[Row]) -> list[Row]:
    """Each policy that beats a line of hexgen, by fleet, rate and figure, and on how many seeds it does.

    by: relative difference of the means (for shares the plain one), always > 0. Means closer than LEAST_DIFFERENCE
    beat nobody.
    """
    found = []
    for subject in (row for row in rows if row["policy"] == SUBJECT):
        for figure in FIGURES:
            for other in _others(rows, subject):
                by = lead(figure, mean_of(other, figure.key), mean_of(subject, figure.key))
                if by is not None and by > LEAST_DIFFERENCE:
                    which = {"fleet": subject["fleet"], "rate": subject["rate"], "name": subject["name"]}
                    pairs = zip(other[figure.key]["values"], subject[figure.key]["values"], strict=True)
                    seeds = sum((theirs > ours) == figure.larger_wins and theirs != ours for theirs, ours in pairs)
                    found.append(which | {"figure": figure.key, "to": other["name"], "by": by, "seeds": seeds})
    return found


def lead(figure: Figure, theirs: float | None, ours: float | None) -> float | None:
    """How far `theirs` is better than `ours`: relative to ours, or plain for shares; None where it cannot be told."""
    if theirs is None or ours is None:
        return None
    ahead = theirs - ours if figure.larger_wins else ours - theirs
    return ahead if figure.in_points else over(ahead, ours)


def _others(rows: Iterable[Row], subject: Row) -> list[Row]:
    """The rows of other policies at the same fleet and rate."""
    where = (subject["fleet"], subject["rate"])
    return [row for row in rows if (row["fleet"], row["rate"]) == where and row["policy"] != SUBJECT]
