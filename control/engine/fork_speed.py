"""How fast a fork is: from the live state to the first setting's curve, and to all of them."""

import time
from dataclasses import replace
from statistics import median
from typing import Any

from control.engine.forking import fork_of
from control.engine.history import History
from control.engine.record import live_on
from control.engine.source import Source
from control.engine.state import Live, start
from control.model.fleet import Fleet, load_fleet
from control.tuning.whatif.lab import Lab
from control.tuning.whatif.spec import read_spec
from control.workload.scenarios import scenario

WARM_S = 900.0  # simulated s before the fork


def lived(fleet: Fleet, source: Source, policy: str, until_s: float, alpha: float = 0.5) -> tuple[Live, History]:
    """A live state that has run to `until_s`, with its history, as an engine keeps them."""
    live, history = start(fleet, source, policy, alpha, 1.0), History()
    live_on(live, until_s, history)
    return live, history


def wide(fleet: Fleet, factor: int) -> Fleet:
    """`factor` times as many of every instance."""
    specs = [replace(s, name=f"{s.name}.{k}") for k in range(factor) for s in fleet.instances]
    return replace(fleet, instances=tuple(specs))


def measure_fork(instances: int, settings: int, seeds: int, minutes: float, runs: int) -> dict[str, Any]:
    """Medians over `runs`: s of wall time to fork, to the first curve and to all, and CPU s of the runs ahead.

    demo-mixed on as many copies of its eight instances, its load in proportion; a sweep of alpha.
    """
    mix, factor = scenario("demo-mixed"), max(1, instances // 8)
    source = Source(mix.name, 0, scenario=replace(mix, rate=mix.rate * factor))
    live, history = lived(wide(load_fleet(mix.fleet), factor), source, mix.policy, WARM_S)
    alphas = [k / max(1, settings - 1) for k in range(settings)]
    sweep = [{"name": "as it is"}, *({"name": f"α {alpha:.2f}", "alpha": alpha} for alpha in alphas[1:])]
    spec = read_spec({"minutes": minutes, "seeds": seeds, "settings": sweep})
    rows = []
    for _ in range(runs):
        begun_s = time.perf_counter()
        given = fork_of(live, history, spec)
        forked_s = time.perf_counter() - begun_s
        result = Lab(given, spec).evaluate(lambda so_far: None)
        rows.append((forked_s, forked_s + result["first_s"], forked_s + result["wall_s"], result["cpu_s"]))
    figures = zip(("fork_s", "first_curve_s", "all_s", "cpu_s"), zip(*rows, strict=True), strict=True)
    return {
        "instances": len(live.fleet.instances),
        "settings": len(spec.settings),
        "seeds": seeds,
        "minutes": minutes,
        "runs": runs,
        "events": int(result["events"]),
        **{name: median(values) for name, values in figures},
    }
