"""Measures a server: how long prefills, decode iterations and both together take, from outside.

Prefill: the TTFT of a lone prompt nobody sent before, less a bare round trip. Decode: the time between tokens while B
streams decode and nothing else happens. Mixed: the longest gap in B streams when a prompt comes in beside them.
Experiments run in rounds, shuffled, until the time is used up; a point is the median over rounds.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import NamedTuple

import aiohttp

from control.adapters import filler
from control.adapters.completions import TEXT, Answer, ask
from control.adapters.identify import fetch
from control.adapters.probe_plan import DEFAULT_BUDGET_TOKENS, Experiment, plan
from control.adapters.probe_windows import decode_window, longest_gap
from control.errors import InputError
from control.model.measured import Iteration, Limits, Point, chunked

WATCH_S = 0.002  # between looks at streams that are awaited
FEW_PIECES = 3  # of every stream before a prompt is sent beside them
MOST_SHARE = 0.1  # of the time that one experiment may take

Progress = Callable[[str, float], None]  # what runs, and the share of the time that is used


class RefusedError(InputError):
    """The server does not take this request, such as a prompt longer than its context."""


class Sample(NamedTuple):
    """One measurement."""

    ms: float
    iterations: tuple[Iteration, ...]


class Measured(NamedTuple):
    """What a probe brings back."""

    points: list[Point]
    noise: float  # largest relative difference when the first experiments were repeated at the end
    rounds: int  # complete ones
    seconds: float
    skipped: list[str]  # experiments that the time or the server did not allow


@dataclass
class Probe:
    """One server under measurement."""

    client: aiohttp.ClientSession
    root: str
    limits: Limits
    budget_s: float = 120.0
    rate: filler.Rate = field(default_factory=filler.Rate)
    round_trip_s: float = 0.0
    token_ms: float = 0.0  # of prefill, the slowest seen: what experiments are expected to take
    step_ms: float = 0.0  # of a decode iteration, the slowest seen
    sent: int = 0

    @property
    def budget_tokens(self) -> int:
        """max_num_batched_tokens: as stated, else vLLM's default."""
        return self.limits.max_num_batched_tokens or DEFAULT_BUDGET_TOKENS

    async def measure(self, progress: Progress, seed: int = 0) -> Measured:
        """All experiments, in rounds. InputError: the server counts no tokens, or refuses."""
        started_s = time.perf_counter()
        await self.prepare()
        experiments, samples, skipped = plan(self.limits), dict[Experiment, list[Sample]](), set[str]()
        rounds, first = 0, experiments[:3]
        while True:
            order = experiments if rounds == 0 else shuffled(experiments, seed + rounds)
            for experiment in order:
                used = (time.perf_counter() - started_s) / self.budget_s
                if used >= 1.0 or self.too_long(experiment):
                    skipped.update({str(experiment)} - {str(e) for e in samples})
                    continue
                progress(str(experiment), used)
                sample = await self.run(experiment)
                if sample is None:
                    skipped.add(str(experiment))
                else:
                    samples.setdefault(experiment, []).append(sample)
            if time.perf_counter() - started_s >= self.budget_s:
                break
            rounds += 1
        noise = await self.noise(first, samples)
        return Measured(points_of(samples), noise, rounds, time.perf_counter() - started_s, sorted(skipped))

    async def prepare(self) -> None:
        """Learn how words become tokens, warm the server up, and time a bare round trip."""
        counts = [await self.count(n) for n in (filler.SHORT, filler.LONG)]
        self.rate = filler.learned(*counts)
        await self.decode(Experiment("decode", 2, 64, 0))
        trips = []
        for _ in range(5):
            begun_s = time.perf_counter()
            await fetch(self.client, f"{self.root}/v1/models")
            trips.append(time.perf_counter() - begun_s)
        self.round_trip_s = median(trips)

    async def count(self, words: int) -> int:
        """Prompt tokens of that many words, as the server counts them."""
        answer = await self.send(filler.text(words, self.key()), 1)
        return answer.prompt_tokens or await self.tokenize(words)

    async def tokenize(self, words: int) -> int:
        """The same by /tokenize, for servers that state no usage."""
        body = {"model": self.limits.model, "prompt": filler.text(words, self.key())}
        try:
            async with self.client.post(f"{self.root}/tokenize", json=body) as response:
                return int((await response.json())["count"])
        except (aiohttp.ClientError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{self.root}: states no usage and has no /tokenize: tokens cannot be counted") from error

    def key(self) -> str:
        """A key that no prompt had before, also not in an earlier calibration."""
        self.sent += 1
        return f"{time.time_ns()}-{self.sent}"

    async def send(self, prompt: str, tokens: int, into: Answer | None = None) -> Answer:
        """One request for exactly `tokens` tokens. InputError where it fails."""
        body = {"model": self.limits.model, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        answer = await ask(self.client, self.root + TEXT, body | {"ignore_eos": True}, into=into)
        if answer.failure:
            kind = RefusedError if answer.failure.startswith("http 4") else InputError
            raise kind(f"{self.root}{TEXT}: {answer.failure}: {answer.message}")
        answer.prompt_tokens = answer.prompt_tokens or round(len(prompt.split()) * self.rate.tokens_a_word)
        return answer

    def prompt(self, tokens: int) -> str:
        """A prompt of about `tokens` tokens that nobody sent before; the server says how many they were."""
        return filler.text(max(1, self.rate.words(tokens - self.rate.overhead_tokens)), self.key())

    def too_long(self, experiment: Experiment) -> bool:
        """Whether it would take more than its share of the time, by what has been seen so far."""
        prompts = experiment.streams * experiment.context + experiment.prefill
        seconds = 1e-3 * (prompts * self.token_ms + experiment.outputs(self.budget_tokens) * self.step_ms)
        return seconds > MOST_SHARE * self.budget_s

    async def run(self, experiment: Experiment) -> Sample | None:
        """One sample; None where the streams did not overlap, or the server refused."""
        kinds = {"prefill": self.prefill, "decode": self.decode, "mixed": self.mixed}
        try:
            return await kinds[experiment.regime](experiment)
        except RefusedError:
            return None

    async def prefill(self, experiment: Experiment) -> Sample | None:
        """TTFT of a lone prompt."""
        answer = await self.send(self.prompt(experiment.prefill), 1)
        ms = max(1e-3, 1e3 * ((answer.ttft_s if answer.pieces_s else answer.e2e_s) - self.round_trip_s))
        self.token_ms = max(self.token_ms, ms / answer.prompt_tokens) if experiment.prefill >= 256 else self.token_ms
        return Sample(ms, chunked(answer.prompt_tokens, self.budget_tokens))

    async def streams(self, experiment: Experiment) -> tuple[list[Answer], list["asyncio.Task[Answer]"]]:
        """Start the decoding streams."""
        answers = [Answer(0.0) for _ in range(experiment.streams)]
        outputs = experiment.outputs(self.budget_tokens)
        tasks = [asyncio.create_task(self.send(self.prompt(experiment.context), outputs, a)) for a in answers]
        return answers, tasks

    async def decode(self, experiment: Experiment) -> Sample | None:
        """Time between tokens while all streams decode."""
        answers, tasks = await self.streams(experiment)
        await asyncio.gather(*tasks)
        window = decode_window(answers)
        if window is None:
            return None
        self.step_ms = max(self.step_ms, window.ms)
        return Sample(window.ms, (Iteration(experiment.streams, window.kv),))

    async def mixed(self, experiment: Experiment) -> Sample | None:
        """The gap that a prompt tears into the streams."""
        answers, tasks = await self.streams(experiment)
        while not all(len(a.pieces_s) >= FEW_PIECES for a in answers) and not any(task.done() for task in tasks):
            await asyncio.sleep(WATCH_S)
        beside = await self.send(self.prompt(experiment.prefill), 1)
        await asyncio.gather(*tasks)
        gap = longest_gap(answers, beside)
        return gap and Sample(gap.ms, (Iteration(experiment.streams, gap.kv, beside.prompt_tokens),))

    async def noise(self, first: list[Experiment], samples: dict[Experiment, list[Sample]]) -> float:
        """How far the first experiments, run again now, are from their medians."""
        apart = [0.0]
        for experiment in first:
            again = await self.run(experiment) if experiment in samples else None
            if again:
                apart.append(abs(again.ms / median(s.ms for s in samples[experiment]) - 1.0))
        return max(apart)


def shuffled(experiments: list[Experiment], seed: int) -> list[Experiment]:
    """The experiments in another order: slow drifts of the server do not look like an effect of size."""
    order = list(experiments)
    Random(seed).shuffle(order)
    return order


def points_of(samples: dict[Experiment, list[Sample]]) -> list[Point]:
    """The median sample of each experiment."""
    points = []
    for experiment, found in samples.items():
        chosen = sorted(found, key=lambda sample: sample.ms)[(len(found) - 1) // 2]
        points.append(Point(experiment.regime, median(s.ms for s in found), chosen.iterations))
    return points
