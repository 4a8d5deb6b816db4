"""Placements: where calls went, what each was compared with, and what the runner-up would have cost.

Rows of the store's table of decisions, of ended workflows and of runs of kind "regret" in; tables and words out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, duration, signed, tidy, workflow
from control.present.queues import EST_QUEUE, EST_RUN
from control.present.units import NOTHING, number, quantity, seconds

Row = Mapping[str, Any]
ALL = "all"
CLOSE = "close"
#: What a score is, by policy; of the others it is the dispatch score.
SCORES = {
    "least-loaded": "less of the calls there",
    "p2c": "less of the calls there",
    "session-affinity": "1 where its conversation was",
    "prefix-affinity": "tokens of its context there",
    "collocated": "free KV blocks",
    "full-disagg": "free KV blocks, or less of the prefill queue in s",
    "conserve": "free KV blocks, or less of the prefill queue in s",
    "ampd": "free KV blocks, or less of the prefill queue in s",
}
#: Why an instance was no candidate (policy.codes.FILTERS), in words.
REASONS = {
    "down": "down",
    "draining": "draining",
    "failed_before": "the call failed there before",
    "too_long": "the context is too long for it",
    "wrong_role": "of the other tier",
    "not_pinned": "the conversation is kept elsewhere",
    "no_room": "too little free KV",
    "not_compared": "not looked at by the rule",
}
SAME_S = 1e-6


class Filter(NamedTuple):
    """What the viewer wants to see; ALL leaves a part open."""

    stage: str = ALL
    instance: str = ALL
    workflow: str = ALL
    policy: str = ALL
    calls: str = ALL


def choices(rows: Sequence[Row], instances: Sequence[str], field: str) -> list[str]:
    """The values of a filter among the newest placements; ALL first."""
    if field == "calls":
        return [ALL, CLOSE]
    if field == "instance":
        return [ALL, *instances]
    return [ALL, *sorted({str(row[field]) for row in rows}, key=lambda text: (len(text), text))]


def asked(wanted: Filter) -> dict[str, Any]:
    """The arguments of `readers.decisions` for a filter."""
    named = {key: value for key, value in wanted._asdict().items() if value != ALL and key != "calls"}
    if "workflow" in named:
        named["workflow"] = int(named["workflow"]) if named["workflow"].isdecimal() else -1
    return named | {"close_only": wanted.calls == CLOSE}


def nothing(wanted: Filter) -> str:
    """The sentence of an empty list."""
    if wanted != Filter():
        return "No placement on record matches these filters."
    return "No call has been placed yet."


def table(rows: Sequence[Row]) -> Table:
    """The newest placements, a row each."""
    heads = [Cell("No.", "num"), Cell("Sim time", "num"), Cell("Workflow", "id"), Cell("Stage"), Cell("Instance", "id")]
    heads += [EST_RUN, EST_QUEUE, Cell("Score", "num", hint="The largest wins")]
    heads += [Cell("Runner-up", "id"), Cell("Its score", "num"), Cell("Policy"), Cell("α", "num")]
    return Table(heads, [_listed(row) for row in rows])


def _listed(row: Row) -> list[Cell]:
    return [
        Cell(str(row["id"]), "num", decision=int(row["id"])),
        duration(row["sim_s"]),
        workflow(int(row["workflow"])),
        Cell(str(row["stage"])),
        Cell(str(row["instance"]), "id"),
        duration(row["t_comp_s"]),
        duration(row["t_queue_s"]),
        Cell(score(row["score"]), "num"),
        Cell("none", "muted") if row["runner_up"] is None else Cell(str(row["runner_up"]), "id"),
        Cell(score(row["runner_up_score"]), "num"),
        Cell(str(row["policy"])),
        Cell(NOTHING if row["alpha"] is None else f"{row['alpha']:.2f}", "num"),
    ]


def score(value: float | None) -> str:
    """A score to three significant digits."""
    return NOTHING if value is None else number(float(f"{value:.3g}"))


def facts(row: Row) -> str:
    """The placement in one line."""
    alpha = "" if row["alpha"] is None else f", α {row['alpha']:.2f}"
    budget = "" if row["budget_s"] is None else f", its budget {seconds(tidy(row['budget_s']))}"
    when = f"placed at {seconds(tidy(row['sim_s']))} of simulated time by {row['policy']}{alpha}"
    return f"Call {row['call']} ({row['stage']}) of workflow #{row['workflow']} on {row['instance']}: {when}{budget}."


def runner_up(row: Row) -> str | None:
    """The instance that came second; of KV that was sent on, the receipt alone knows it."""
    if row["runner_up"] is not None:
        return str(row["runner_up"])
    others = [c for c in row["candidates"] or () if c["why"] is None and c["instance"] != row["instance"]]
    return str(others[0]["instance"]) if others else None


def compared(row: Row) -> list[Row]:
    """The instances of the receipt that were candidates, the chosen one first."""
    return [c for c in row["candidates"] or () if c["why"] is None]


def receipt(row: Row) -> Table:
    """Both terms of the score as bars, instance by instance; the chosen one and the runner-up are marked."""
    rows, second = compared(row), runner_up(row)
    longest = {name: max((c[name] or 0.0 for c in rows), default=0.0) for name in ("t_comp_s", "t_queue_s")}
    heads = [Cell("Instance", "id"), Cell(""), EST_RUN, Cell("", "size run")]
    heads += [EST_QUEUE, Cell("", "size wait")]
    heads += [Cell("Score", "num", hint=f"{SCORES.get(row['policy'], 'dispatch score')}; the largest wins")]
    heads += [Cell("Seen", "num", hint="How old what was known of the instance was")]
    return Table(heads, [_candidate(c, row["instance"], second, longest) for c in rows])


def _candidate(candidate: Row, chosen: str, second: str | None, longest: Mapping[str, float]) -> list[Cell]:
    name = str(candidate["instance"])
    mark = Cell("✓ chosen", "good") if name == chosen else Cell("runner-up" if name == second else "", "amber")
    return [
        Cell(name, "id"),
        mark,
        duration(candidate["t_comp_s"]),
        Cell("", "size run", bar=_share(candidate["t_comp_s"], longest["t_comp_s"])),
        duration(candidate["t_queue_s"]),
        Cell("", "size wait", bar=_share(candidate["t_queue_s"], longest["t_queue_s"])),
        Cell(score(candidate["score"]), "num"),
        Cell(seen(candidate["age_s"]), "num muted"),
    ]


def _share(value: float | None, longest: float) -> float:
    return 0.0 if value is None or longest <= 0.0 else value / longest


def seen(age_s: float | None) -> str:
    """How old what is known of an instance is, in words."""
    if age_s is None:
        return "never"
    return "now" if age_s == 0.0 else f"{seconds(round(age_s, 1))} ago"


def filtered(row: Row) -> Table:
    """The listed instances that were no candidates, and why."""
    rows = [c for c in row["candidates"] or () if c["why"] is not None]
    heads = [Cell("No candidate", "id"), Cell("Why"), Cell("Seen", "num")]
    cells = [[Cell(c["instance"], "id"), Cell(reason(c["why"])), Cell(seen(c["age_s"]), "num")] for c in rows]
    return Table(heads, cells)


def reason(word: str) -> str:
    """Why an instance was no candidate, in words."""
    return REASONS.get(word, word.replace("_", " "))


def unlisted(row: Row) -> str:
    """How many instances were no candidates, by reason, in words; "" where all of them are listed."""
    counts = {word: n for word, n in (row["filtered"] or {}).items() if n}
    if sum(counts.values()) <= sum(c["why"] is not None for c in row["candidates"] or ()):
        return ""
    parts = [f"{n} × {reason(word)}" for word, n in sorted(counts.items(), key=lambda item: -item[1])]
    return f"No candidates: {', '.join(parts)}." if parts else ""


def no_receipt(row: Row) -> str:
    """The sentence for a placement whose receipt is not kept."""
    terms = f"estimated run {duration(row['t_comp_s']).text}, queue {duration(row['t_queue_s']).text}"
    kept = "What it was compared with is kept no more (the store has that of the newest 20,000 placements)"
    return f"{kept}, only its own terms: {terms}, score {score(row['score'])}."


def became(row: Row, ended: Row | None) -> str:
    """What became of the call, by the timeline of its workflow once that has ended."""
    if ended is None:
        return "Its workflow has not ended yet."
    call = next((c for c in ended["timeline"] or () if c["call"] == row["call"]), None)
    if call is None:
        return "The timeline of its workflow is not kept."
    moments = [(call[name], words) for name, words in (("first_token_s", "TTFT"), ("finished_s", "ended after"))]
    told = [f"{words} {seconds(tidy(at - call['ready_s']))}" for at, words in moments if at is not None]
    late = f"its workflow took {seconds(tidy(ended['latency_s']))} of {seconds(tidy(ended['slo_s']))}"
    passive = "" if call["state"] in ("completed", "failed") else "was "
    return f"It {passive}{call['state']}: {', '.join([*told, late])}."


def verdict(run: Row) -> str:
    """What the runner-up would have cost, in one sentence."""
    params, result = run["params"], run["result"]
    if result["problem"]:
        return f"The runner-up cannot be told: {result['problem']}."
    difference_s, other = result["difference_s"], params["runner_up"]
    if abs(difference_s) <= SAME_S:
        told = f"On {other} the workflow would have taken the same time"
    else:
        word = "longer" if difference_s > 0.0 else "less"
        told = f"On {other} the workflow would have taken {seconds(tidy(abs(difference_s)))} {word}"
    debt_s = tidy(result["other_debt_s"] - result["debt_s"])
    if abs(debt_s) <= SAME_S:
        return f"{told}."
    word = "more" if debt_s > 0.0 else "less"
    return f"{told}, and all workflows would have run up {seconds(abs(debt_s))} {word} of SLO debt."


def replayed(run: Row) -> str:
    """What the replay rests on, in words; "" where there was none."""
    params, result = run["params"], run["result"]
    if result["problem"]:
        return ""
    from_s, until_s = seconds(tidy(result["state_sim_s"])), seconds(tidy(result["until_sim_s"]))
    off_s = result["replayed_s"] - result["latency_s"]
    off = f"it is off by {signed(off_s)}, for what was changed meanwhile, or is not known, is not replayed"
    exact = "it comes to the very same end" if result["is_exact"] else off
    return f"Replayed from {from_s} to {until_s} of simulated time; as placed on {params['instance']}, {exact}."


def regret(run: Row) -> Table:
    """Both replays side by side; no rows where there was none."""
    params, result = run["params"], run["result"]
    sides = [Cell(str(params.get(key, "")), "num") for key in ("instance", "runner_up")]
    heads = [Cell(""), *sides, Cell("Difference", "num")]
    if result["problem"]:
        return Table(heads, [])
    n = number(result["workflows"])
    return Table(
        heads,
        [
            _pair("Latency of the workflow", result["replayed_s"], result["other_s"]),
            _pair(f"SLO debt of {n} workflows that ended", result["debt_s"], result["other_debt_s"]),
        ],
    )


def by_instance(run: Row) -> Table:
    """Busy time and calls finished by instance, as it was and with the runner-up, where they differ."""
    heads = [Cell("Instance", "id"), Cell("Busy", "num"), Cell("Instead", "num"), Cell("Difference", "num")]
    heads += [Cell("Finished", "num"), Cell("Instead", "num")]
    rows = []
    for row in run["result"].get("per_instance", ()):
        if abs(row["other_busy_s"] - row["busy_s"]) <= SAME_S and row["finished"] == row["other_finished"]:
            continue
        busy = _pair(row["instance"], row["busy_s"], row["other_busy_s"])
        rows.append([busy[0]._replace(kind="id"), *busy[1:3], busy[3]._replace(kind="num")])
        rows[-1] += [Cell(quantity(row[name], "").strip(), "num") for name in ("finished", "other_finished")]
    return Table(heads, rows)


def _pair(label: str, was_s: float, other_s: float) -> list[Cell]:
    difference_s = tidy(other_s - was_s)
    kind = "good" if difference_s < 0 else "amber" if difference_s > 0 else "muted"  # of what would have been
    return [Cell(label), duration(was_s), duration(other_s), Cell(signed(difference_s), f"num {kind}")]


def unknown(number_: int) -> str:
    """The sentence for a number that no placement has."""
    return f"No placement {number_} is in the store: it is too old, or was never made."


def of_decision(runs: Sequence[Row], decision: int) -> Row | None:
    """The newest of the runs of kind "regret" that is of this placement."""
    return next((run for run in runs if run["params"].get("decision") == decision), None)
