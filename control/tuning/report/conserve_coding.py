"""ConServe's policies on coding agents as a section: where one heavy prefill and a light tail is not the premise."""

from typing import Final

from control.tuning.report.base import Row
from control.tuning.report.conserve_text import violations
from control.tuning.report.markdown import Section, bullets, fixed, share, table

TITLE: Final = "Coding agents: think time, idle KV and retention limits"


def coding_section(coding: Row | None) -> Section:
    """Latency, idle KV and the price of a retention limit, by rate; a line where no trace was given."""
    if coding is None:
        return Section(3, TITLE, ("No trace of coding agents was given.",))
    turns = coding["turns"]
    lead = (
        f"{coding['conversations']:,} conversations with {coding['calls']:,} calls out of a coding-agent trace, at "
        f"their recorded think times, on the same four GPUs. Turn 1 carries {share(turns['first_turn_share'], 0)} % of "
        f"the uncached prefill in what fits the {coding['context_limit_tokens']:,} tokens of the model; "
        f"{share(turns['pauses_over_60_s'], 0)} % of the pauses exceed 60 s, {share(turns['pauses_over_300_s'], 0)} % "
        "exceed 300 s. Every wait counts, think time does not. The need is what is observed. Idle KV: share of the "
        "decoding instances' KV that holds contexts of pinned conversations between their turns. Kept: how long an "
        "idle context is."
    )
    found = [paragraph for rate in rates(coding) for paragraph in verdict(coding, rate)]
    return Section(3, TITLE, (lead, bullets(coding["problems"]), _table(coding), bullets(found)))


def rates(coding: Row) -> list[float]:
    """The rates that were run, conversations/s."""
    return list(dict.fromkeys(run["rate"] for run in coding["runs"]))


def _table(coding: Row) -> str:
    """A line a run."""
    head = ["policy", "kept", "conversations/s", "TTFET P95", "TTFT of turns, P95 s", "violations TTFET / TBT / E2E, %"]
    head += ["idle KV, mean %", "peak %", "recomputed tokens", "waits for a decoder, s"]
    rows = [
        [
            *(run["policy"], kept(run), f"{run['rate']:g}", fixed(run["ttfet_p95"], 2)),
            *(fixed(run["turn_ttft_p95_s"], 2), violations(run)),
            *(share(run["idle_kv_mean"]), share(run["idle_kv_peak"])),
            *(f"{run['recomputed_tokens']:,}", fixed(run["hold_s"], 0)),
        ]
        for run in coding["runs"]
    ]
    return table(head, rows, names=2)


def kept(run: Row) -> str:
    """How long an idle context is kept."""
    return "for ever" if run["idle_ttl_s"] is None else f"{run['idle_ttl_s']:g} s"


def verdict(coding: Row, rate: float) -> list[str]:
    """At one rate: who has the lowest P95 TTFET, and which limit serves ConServe best."""
    runs = [run for run in coding["runs"] if run["rate"] == rate and run["ttfet_p95"] is not None]
    mine = [run for run in runs if run["policy"] == "conserve"]
    if not mine:
        return []
    best, own = min(runs, key=lambda run: run["ttfet_p95"]), min(mine, key=lambda run: run["ttfet_p95"])
    return [
        f"At {rate:g}/s the lowest P95 TTFET is {best['policy']}'s ({best['ttfet_p95']:.2f}); ConServe's own best is "
        f"{own['ttfet_p95']:.2f}, its contexts kept {kept(own)}."
    ]
