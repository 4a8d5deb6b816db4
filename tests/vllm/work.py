"""Text-to-SQL shaped work, scaled to servers of a few million parameters: a trace in Headway's own format."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson

SLO_S = 6.0
LONGEST_TOKENS, SHORTEST_TOKENS = 1500, 50
SCHEMA_TOKENS, SCHEMA_SPREAD = 90.0, 0.8  # median and sigma of the lognormal length of a database's schema

Call = dict[str, Any]


def call(stage: str, group: int, inputs: float, outputs: int) -> Call:
    """One call of a workflow; lengths in tokens."""
    kept = int(min(LONGEST_TOKENS, max(SHORTEST_TOKENS, inputs)))
    return {"stage": stage, "group": group, "input_tokens": kept, "output_tokens": outputs}


def calls(chance: Random) -> Iterator[Call]:
    """The calls of one workflow: six to eight stages, two of which run calls side by side."""
    schema = SCHEMA_TOKENS * chance.lognormvariate(0.0, SCHEMA_SPREAD)
    yield call("keywords", 0, chance.uniform(50, 90), chance.randint(15, 30))
    yield call("retrieve", 1, chance.uniform(50, 120), chance.randint(10, 20))
    for _ in range(2):
        yield call("candidate", 2, schema + chance.uniform(20, 40), chance.randint(40, 60))
    group = 3
    for _ in range(chance.choices((0, 1, 2), (0.5, 0.35, 0.15))[0]):
        yield call("revise", group, schema + chance.uniform(60, 120), chance.randint(30, 50))
        group += 1
    yield call("unit_test", group, chance.uniform(60, 120), chance.randint(25, 45))
    for _ in range(chance.randint(2, 3)):
        yield call("evaluate", group + 1, chance.uniform(50, 90), chance.randint(15, 30))
    yield call("select", group + 2, chance.uniform(50, 70), chance.randint(5, 15))


def write_trace(path: Path, workflows: int, seed: int) -> Path:
    """The trace of that many workflows without times, the same for the same seed."""
    chance = Random(seed)
    rows = [{"id": n, "kind": "tiny-sql", "slo_s": SLO_S, "calls": list(calls(chance))} for n in range(workflows)]
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return path
