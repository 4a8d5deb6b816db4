"""HexGen-Flow in the full twin where workflows differ: tenants with unlike SLOs, and agents beside text-to-SQL."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from control.metrics.latency import percentile, workflow_latencies_s
from control.metrics.slo import attainment
from control.model.fleet import Fleet, load_fleet
from control.model.workload import Workload
from control.policy.tables import Table
from control.tuning.report.base import Inputs, Row, spread
from control.tuning.report.hexgen_twin import Variant, tuned_alpha, variants
from control.twin.simulate import simulate
from control.workload.arrivals import arrange
from control.workload.build import merge
from control.workload.scenarios import scenario, window

TENANT_FLEET: Final = "hexgen-hetero-1"
TENANT_RATES: Final = (0.05, 0.1, 0.15, 0.2)  # workflows/s: beyond them next to no SLO is met
TENANT_SCALES: Final = (2.0, 1.0)  # SLO scale of the first and of the second half of the workflows (section 5)

MIX: Final = "demo-mixed"
MIX_WINDOWS: Final = 8  # minutes of the scenario
MIX_LOADS: Final = (0.5, 1.0)  # factors on the scenario's own rate
TUNE_WINDOW_S: Final = 300.0  # last seconds of the mix that alpha is tuned on

Pick = Callable[[Table], Table]  # some of the workflows of a run


def tenants(inputs: Inputs) -> Row:
    """P95 and attainment of two tenants whose workflows have unlike SLOs, by rate and policy."""
    fleet, rows = load_fleet(TENANT_FLEET), []
    for rate in TENANT_RATES:
        works = [halved(arrange(inputs.work, rate=rate, seed=seed)) for seed in range(inputs.seeds + 1)]
        alpha = tuned_alpha(works.pop(), fleet)
        rows += [{"rate": rate, **by_group(works, fleet, variant, HALVES)} for variant in variants(alpha)]
        inputs.say(f"HexGen-Flow, two tenants: {rate:g} workflows/s done")
    return {"fleet": fleet.name, "scales": list(TENANT_SCALES), "groups": list(HALVES), "runs": rows}


def halved(work: Workload) -> Workload:
    """The workload with the SLO scales of the two tenants, the first half of its workflows being the first's."""
    workflows = work.workflows.copy()
    is_first = np.arange(len(workflows)) < len(workflows) // 2
    workflows["slo_scale"] *= np.where(is_first, *TENANT_SCALES)
    return work._replace(workflows=workflows)


HALVES: Final[dict[str, Pick]] = {
    "first half": lambda workflows: workflows[: len(workflows) // 2],
    "second half": lambda workflows: workflows[len(workflows) // 2 :],
}


def mix(inputs: Inputs) -> Row:
    """Text-to-SQL with agent conversations beside it: P95 and attainment by kind, load and policy."""
    plan, rows = scenario(MIX), []
    fleet, groups = load_fleet(plan.fleet), kinds(mixed(1.0, 0))
    for load in MIX_LOADS:
        works = [mixed(load, seed) for seed in range(inputs.seeds + 1)]
        alpha = tuned_alpha(works.pop(), fleet, TUNE_WINDOW_S)
        rows += [{"load": load, **by_group(works, fleet, variant, groups)} for variant in variants(alpha)]
        inputs.say(f"HexGen-Flow, other load beside it: load {load:g} done")
    head = {"scenario": plan.name, "fleet": fleet.name, "rate": plan.rate, "agent_share": plan.agent_share}
    return head | {"minutes": MIX_WINDOWS, "groups": list(groups), "runs": rows}


def mixed(load: float, seed: int) -> Workload:
    """MIX_WINDOWS minutes of the scenario at `load` times its rate."""
    plan = scenario(MIX)
    return merge([window(plan, seed, minute, load) for minute in range(MIX_WINDOWS)], plan.name, one_prompt_set=True)


def kinds(work: Workload) -> dict[str, Pick]:
    """For each kind of workflow, what picks it."""
    return {kind: _of_kind(number) for number, kind in enumerate(work.kinds)}


def _of_kind(number: int) -> Pick:
    """Picks the workflows of the kind of that number."""
    return lambda workflows: workflows[workflows["kind"] == number]


def by_group(works: Sequence[Workload], fleet: Fleet, variant: Variant, groups: dict[str, Pick]) -> Row:
    """One policy on every seed: the spread of P95 (s) and of attainment in each group of workflows."""
    ended = [simulate(work, fleet, variant.policy, variant.alpha).workflows for work in works]
    found = {}
    for name, pick in groups.items():
        parts = [pick(workflows) for workflows in ended]
        found[name] = {
            "p95_s": spread([percentile(workflow_latencies_s(part), 95) for part in parts]),
            "slo_attainment": spread([attainment(part) for part in parts]),
        }
    return {**variant._asdict(), "by_group": found}
