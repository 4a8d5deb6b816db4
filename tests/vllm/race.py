"""Race policies over two real servers of unequal speed, beside what the simulator predicts of the same runs.

    python tests/vllm/race.py --runs 5 --json

Starts small on core 0 and med on core 1, calibrates both, finds the rate from the capacity that the simulator states
under the first policy, and runs the same text-to-SQL shaped trace under every policy in turn, each run through a
`headway engine` of its own with `headway load`, the order changing from run to run. `headway sim` runs the same trace,
rate, seed and fleet file, before the run. With --warm-ups, runs that do not count come first: from each the engine's
refinement of the profiles is carried on to the next, into its fleet file and so into its prediction, as one engine that
goes on would. A run whose queue only grows is ended early; of its P95 it is told what it is at least.
"""

import argparse
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from control.cli.options import read_work
from control.gateway.speed.measure import machine
from tests.support.running import descendants, headway, object_of, until
from tests.vllm import page
from tests.vllm.servers import Server, serving
from tests.vllm.stack import Stack, calibrate, command, headway_over, write_fleet
from tests.vllm.work import write_trace

FLOOD = 1000.0  # workflows/s: all of them at once, so that the throughput is the capacity
WARM_UP_SEED = 1000
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")

Report = dict[str, Any]


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def cpu_s(pid: int) -> float:
    """CPU time of a process and of all below it, s."""
    total = 0.0
    for one in (pid, *descendants(pid)):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) * TICK_S
    return total


class Race:
    """The runs of one set of servers."""

    def __init__(self, folder: Path, servers: tuple[Server, ...], asked: argparse.Namespace) -> None:
        self.folder, self.servers, self.options = folder, servers, asked
        self.policies: list[str] = asked.policies.split(",")
        self.windows = dict(zip(("small", "med"), map(int, asked.windows.split(",")), strict=True))
        self.profiles: dict[str, Path] = {}
        self.rate = asked.rate
        self.scales: dict[str, tuple[float, float]] = {}

    @property
    def known(self) -> dict[str, Any]:
        """What a fleet file is written from beside the servers."""
        return {"profiles": self.profiles, "windows": self.windows, "scales": self.scales}

    def learn(self) -> Report:
        """Profiles of the servers: those that were given, else measured now, one server at a time."""
        told: Report = {}
        for server in self.servers:
            given = Path(self.options.profiles or "") / f"{server.model}.json"
            if self.options.profiles and given.exists():
                self.profiles[server.model] = given.resolve()
                told[server.model] = orjson.loads(given.read_bytes())
                continue
            say(f"calibrating {server}")
            self.profiles[server.model], told[server.model] = calibrate(self.folder, server, self.options.budget_s)
            if self.options.profiles:
                given.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.profiles[server.model], given)
        return told

    def simulate(self, trace: Path, policy: str, rate: float, seed: int) -> Report:
        """What the simulator says of a run on the fleet file of the real servers."""
        fleet = write_fleet(self.folder / "fleet.toml", self.servers, **self.known)
        rule = ("--policy", policy, "--alpha", self.options.alpha, "--rate", rate, "--seed", seed)
        return command(self.folder, "sim", "--fleet", fleet, "--trace", trace, *rule)

    def choose_rate(self) -> Report:
        """The rate as a share of the capacity under the first policy."""
        trace = write_trace(self.folder / "flood.jsonl", 300, 0)
        capacity = self.simulate(trace, self.policies[0], FLOOD, 0)["throughput_wps"]
        self.rate = self.options.rate or self.options.load * capacity
        return {"capacity_wps": capacity, "rate_wps": self.rate}

    def warm_up(self) -> Report:
        """Runs that do not count: the engine learns what the servers cost under load; the rate that follows from it."""
        chosen = self.choose_rate()
        for k in range(self.options.warm_ups):
            say(line(self.run(self.policies[0], WARM_UP_SEED + k, self.options.warm_up_s)))
            chosen = self.choose_rate()
        return chosen

    def run(self, policy: str, seed: int, duration_s: float) -> Report:
        """One real run and its prediction."""
        trace, scales = self.folder / f"{seed}.jsonl", dict(self.scales)
        write_trace(trace, round(self.rate * duration_s), seed)
        predicted = self.simulate(trace, policy, self.rate, seed)
        for server in self.servers:
            server.forget()
        with headway_over(self.folder, self.servers, policy, self.options.alpha, **self.known) as stack:
            before = self.cpu(stack)
            load = self.drive(stack, trace, seed, duration_s)
            used = {name: seconds - before[name] for name, seconds in self.cpu(stack).items()}
            until(stack.is_idle, "the record says that all has ended")
            rows = stack.instances()
            seen = {name: row["observed"] for name, row in rows.items()}
            refined = stack.events("refined")
        if self.options.warm_ups:
            self.scales = {name: tuple(row["scales"]) for name, row in rows.items()}
        told = {"policy": policy, "seed": seed, "scales": scales, "refined": refined, "observed": seen, "cpu_s": used}
        return told | beside(load, predicted)

    def drive(self, stack: Stack, trace: Path, seed: int, duration_s: float) -> Report:
        """What the load driver reports; it is told to end --patience-s after the last workflow should have come."""
        how = ("--rate", self.rate, "--seed", seed, "--json")
        running = headway(self.folder, "load", "--url", stack.url, "--trace", trace, *how)
        try:
            with suppress(subprocess.TimeoutExpired):
                running.wait(duration_s + self.options.patience_s)
            if running.is_alive():
                running.signal(signal.SIGINT)
            running.wait(60.0)
            return with_bound(object_of(running.stdout), trace, self.rate, seed)
        finally:
            running.end()

    def cpu(self, stack: Stack) -> dict[str, float]:
        """CPU time so far of Headway and of every server, s."""
        mine = {"headway": cpu_s(stack.running.pid)}
        return mine | {one.model: cpu_s(one.running.pid) for one in self.servers if one.running is not None}

    def runs(self) -> Iterator[Report]:
        """All runs; every other time in the other order."""
        for seed in range(self.options.first_seed, self.options.first_seed + self.options.runs):
            for policy in self.policies[:: -1 if seed % 2 else 1]:
                report = self.run(policy, seed, self.options.duration)
                (self.folder / f"{seed}-{policy}-run.json").write_bytes(orjson.dumps(report))
                say(line(report))
                yield report


def with_bound(load: Report, trace: Path, rate: float, seed: int) -> Report:
    """The report of a run that was ended early with what its P95 is at least, s.

    The workflows that had not ended count as those that came last, with the age they had by then.
    """
    work = read_work(str(trace), None, 1, rate, "poisson", 1.0, 1.0, seed)
    flows, ages_s = load["workflows"], load["duration_s"] - np.sort(work.workflows["arrival_s"])
    beyond = int(0.05 * flows["planned"])
    if load["interrupted"] and flows["unfinished"] > beyond:
        load["p95_at_least_s"] = float(ages_s[flows["planned"] - flows["unfinished"] + beyond])
    return load


def beside(load: Report, predicted: Report) -> Report:
    """The figures of a run beside those that were predicted."""
    latency, bound = load["workflow_latency_s"], load.get("p95_at_least_s")
    served = {"mean_s": latency["mean"], "p50_s": latency["p50"], "p95_s": bound or latency["p95"]}
    return {
        **served,
        "ended_early": bound is not None,
        "predicted": {name: predicted[name] for name in served},
        "error": {name: predicted[name] / value - 1.0 for name, value in served.items() if value},
        "workflows": load["workflows"],
        "calls": load["calls"],
        "failures": load["failures"],
        "slo_attainment": load["slo_attainment"],
        "lateness_s": load["lateness_s"],
        "duration_s": load["duration_s"],
        "ttft_s": load["ttft_s"],
        "tpot_s": load["tpot_s"],
        "predicted_ttft_p95_s": predicted["ttft_p95_s"],
    }


def line(report: Report) -> str:
    """A run in one line."""
    told = f"seed {report['seed']} {report['policy']} {report['scales']}: "
    for name in ("mean_s", "p95_s"):
        told += f"{name} {report[name] or math.nan:.2f} (predicted {report['predicted'][name]:.2f}), "
    told += "ended early, " if report["ended_early"] else ""
    flows, cpu = report["workflows"], ", ".join(f"{name} {s:.0f}" for name, s in report["cpu_s"].items())
    return told + f"{flows['done']} done, {flows['failed']} failed in {report['duration_s']:.0f} s, CPU s: {cpu}"


def verdict(runs: list[Report], policies: list[str]) -> Report:
    """Who won, and how far the predictions were off: medians over the runs."""
    found: Report = {}
    for policy in policies:
        mine = [run for run in runs if run["policy"] == policy]
        whole = [run["error"] for run in mine if not run["ended_early"]]
        errors = {name: statistics.median(e[name] for e in whole) for name in ("mean_s", "p95_s") if whole}
        p95s = [run["p95_s"] for run in mine]
        found[policy] = {"runs": len(mine), "whole": len(whole), "p95_s": p95s, "median_error": errors}
    if len(policies) > 1:
        first, other = (found[policy]["p95_s"] for policy in policies[:2])
        found["wins"] = sum(a < b for a, b in zip(first, other, strict=True))
        found["p95_gain"] = [b / a for a, b in zip(first, other, strict=True)]
    return found


@contextmanager
def scratch(kept: str | None) -> Iterator[Path]:
    """A folder for stores and logs, kept where one is named."""
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        yield Path(folder)


def options(given: Sequence[str]) -> argparse.Namespace:
    """The options that `given` sets, and the others' defaults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each policy, seeds from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--duration", type=float, default=60.0, help="s in which workflows arrive")
    parser.add_argument("--patience-s", type=float, default=30.0, help="s after which a run that goes on is ended")
    parser.add_argument(
        "--warm-ups", type=int, default=0, help="runs before, of --warm-up-s, from which costs are learned"
    )
    parser.add_argument("--warm-up-s", type=float, default=120.0, help="s of such a run")
    parser.add_argument("--policies", default="hexgen,rr-fcfs", help="the first should win over the second")
    parser.add_argument("--alpha", type=float, default=0.3)
    parser.add_argument("--load", type=float, default=0.7, help="share of the simulated capacity")
    parser.add_argument("--rate", type=float, help="workflows/s instead of --load")
    parser.add_argument("--windows", default="8,4", help="calls in flight on small and on med")
    parser.add_argument("--budget-s", type=float, default=120.0, help="s to calibrate each server")
    parser.add_argument("--profiles", help="folder of profiles: used where they are there, else written")
    parser.add_argument("--folder", help="keep stores and logs here")
    parser.add_argument("--out", type=Path, help="page of benchmarks whose section to rewrite")
    parser.add_argument("--json", action="store_true", help="print one object on stdout")
    return parser.parse_args(given)


def command_line(asked: argparse.Namespace) -> str:
    """What was run, as far as it differs from the defaults; where it was kept is the machine's own affair."""
    usual, words = vars(options([])), ["python tests/vllm/race.py"]
    for name, value in vars(asked).items():
        if value != usual[name] and name not in ("folder", "out", "profiles", "json"):
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join([*words, "--out docs/benchmarks.md"])


def main() -> None:
    """Run it all and print what came out."""
    asked = options(sys.argv[1:])
    servers = (Server("small", on=0), Server("med", on=1))
    with scratch(asked.folder) as folder, serving(folder, *servers):
        race = Race(folder, servers, asked)
        report: Report = {"profiles": race.learn(), **race.warm_up()}
        say(f"capacity {report['capacity_wps']:.2f} workflows/s, rate {report['rate_wps']:.2f}")
        report["runs"] = list(race.runs())
        report["verdict"] = verdict(report["runs"], race.policies)
    report |= {"command": command_line(asked), "machine": machine(), "date": time.strftime("%Y-%m-%d")}
    say(orjson.dumps(report["verdict"], option=orjson.OPT_INDENT_2).decode())
    if asked.out:
        page.rewrite(asked.out, report)
    if asked.json:
        sys.stdout.buffer.write(orjson.dumps(report) + b"\n")


if __name__ == "__main__":
    main()
