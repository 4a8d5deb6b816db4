"""Replays a workload as real traffic.

Workflows start when they arrive, whether or not the server keeps up; the stages of a workflow follow one another, with
the recorded tool time between them.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import aiohttp

from control.adapters.completions import CHAT, Answer, ask
from control.adapters.filler import LONG, SHORT, Rate, learned, text
from control.adapters.prompts import Prompts
from control.errors import InputError
from control.model.workload import Workload

NEVER = 1e9  # an SLO of this many s is none


@dataclass
class Flow:
    """What became of a workflow, s since the start."""

    row: int
    planned_s: float
    started_s: float = math.nan
    ended_s: float = math.nan
    failed: bool = False
    done: bool = False
    slo_s: float = math.nan

    @property
    def latency_s(self) -> float:
        """From its planned arrival to the end of its last call: a late driver does not flatter the server."""
        return self.ended_s - self.planned_s


class Ended(NamedTuple):
    """The end of a call, s since the start."""

    failed: bool
    ended_s: float


@dataclass
class Drive:
    """A run under way, and its book."""

    client: aiohttp.ClientSession
    root: str
    model: str
    workload: Workload
    seed: int = 0
    headers: bool = True  # send x-headway-*
    duration_s: float = math.inf  # no workflow starts after
    flows: list[Flow] = field(default_factory=list)
    answers: list[tuple[int, Answer]] = field(default_factory=list)  # row of the call, what came
    in_flight: int = 0
    begun_s: float = 0.0
    interrupted: bool = False
    prompts: Prompts = field(default_factory=lambda: Prompts(Rate(), 0))
    name: str = ""

    @property
    def now_s(self) -> float:
        """s since the start."""
        return time.perf_counter() - self.begun_s

    async def prepare(self) -> None:
        """Learn how words become tokens. InputError: the server does not answer or states no usage."""
        counts = []
        for words in (SHORT, LONG):
            message = {"role": "user", "content": text(words, f"{time.time_ns()} {words}")}
            answer = await self.send([message], 1, {})
            if answer.failure:
                raise InputError(f"{self.root}{CHAT}: {answer.failure}: {answer.message}")
            counts.append(answer.prompt_tokens)
        self.prompts = Prompts(learned(*counts), self.seed)
        self.name = f"{self.seed}-{time.time_ns():x}"

    async def run(self, tick: Callable[["Drive"], None], every_s: float = 0.25) -> None:
        """All workflows; a cancellation ends it early, and what is known stays. `tick` is called now and then."""
        self.begun_s = time.perf_counter()
        ticking = asyncio.create_task(self.ticks(tick, every_s))
        tasks: list[asyncio.Task[None]] = []
        try:
            for row, workflow in enumerate(self.workload.workflows):
                planned_s = float(workflow["arrival_s"])
                if planned_s > self.duration_s:
                    break
                await asyncio.sleep(max(0.0, planned_s - self.now_s))
                tasks.append(asyncio.create_task(self.flow(row, planned_s)))
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            self.interrupted = True
        finally:
            for task in (ticking, *tasks):
                task.cancel()
            await asyncio.gather(ticking, *tasks, return_exceptions=True)
            tick(self)

    async def ticks(self, tick: Callable[["Drive"], None], every_s: float) -> None:
        """Show how far it is."""
        while True:
            tick(self)
            await asyncio.sleep(every_s)

    async def flow(self, row: int, planned_s: float) -> None:
        """One workflow: groups in order, each call's tool time waited for."""
        workflow = self.workload.workflows[row]
        flow = Flow(row, planned_s, self.now_s, slo_s=float(workflow["slo_s"]))
        self.flows.append(flow)
        first, end = int(workflow["first_call"]), int(workflow["first_call"] + workflow["n_calls"])
        while first < end:
            last = self.group_end(first, end)
            ended = await asyncio.gather(*(self.call(c, end, last) for c in range(first, last)))
            flow.ended_s = max(one.ended_s for one in ended)
            if any(one.failed for one in ended) and not workflow["go_on"]:
                flow.failed = True
                return
            first = last
        flow.done = True

    def group_end(self, first: int, end: int) -> int:
        """Row after the last call that runs in parallel with `first`."""
        groups = self.workload.calls["group"]
        return next((c for c in range(first, end) if groups[c] != groups[first]), end)

    async def call(self, c: int, end: int, last: int) -> Ended:
        """One call and, unless its group is the workflow's last, the tool time behind it."""
        call = self.workload.calls[c]
        self.in_flight += 1
        try:
            headers = self.headers_of(c, final=c == end - 1)
            answer = await self.send(self.prompts.of(call, c), int(call["output_tokens"]), headers)
        finally:
            self.in_flight -= 1
        self.answers.append((c, answer))
        self.prompts.answered(call, answer)
        ended = Ended(answer.failure is not None, self.now_s)
        if last < end and not ended.failed:
            await asyncio.sleep(float(call["tool_s"]))
        return ended

    async def send(self, messages: list[dict[str, str]], tokens: int, headers: Mapping[str, str]) -> Answer:
        """One chat of exactly `tokens` tokens."""
        body = {"model": self.model, "messages": messages, "max_tokens": tokens, "ignore_eos": True}
        return await ask(self.client, self.root + CHAT, body, headers)

    def headers_of(self, c: int, final: bool) -> dict[str, str]:
        """Who the call belongs to, and its deadline."""
        work = self.workload
        call, workflow = work.calls[c], work.workflows[work.calls[c]["workflow"]]
        found = {"x-session-id": f"{self.name}-s{int(call['stream'])}"} if call["stream"] >= 0 else {}
        if not self.headers:
            return found
        found |= {
            "x-headway-workflow": f"{self.name}-{int(workflow['id'])}",
            "x-headway-stage": work.steps[call["step"]],
            "x-headway-kind": work.kinds[workflow["kind"]],
            "x-headway-tenant": work.tenants[workflow["tenant"]],
        }
        if math.isfinite(workflow["slo_s"]) and workflow["slo_s"] < NEVER:
            found["x-headway-slo-s"] = f"{workflow['slo_s']:.6g}"
        return found | ({"x-headway-final": "1"} if final else {})
