"""Eyes on the servers: metrics, readiness, power; and how what was predicted compares with what was served."""

import asyncio
import logging
import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from control.adapters.faults import MetricsError
from control.adapters.load_header import parse_load_header
from control.adapters.power import PowerSource, power_source
from control.adapters.scrape import Scraper
from control.adapters.watch import Watch
from control.engine.refine import NONE
from control.gateway.upstream import BREAK_AFTER, Health, Upstream
from control.policy.codes import COMPLETED
from control.tuning.served import Served

if TYPE_CHECKING:
    from control.gateway.call import Call
    from control.gateway.gateway import Gateway

log = logging.getLogger("headway.gateway")

READY_S = 30.0  # a one-token generation may take so long
HEADER_EVERY_S = 0.5  # a server is asked to tell its load with an answer at most so often
KEPT = 400  # answers kept of each server
TOLD_FOR_S = 5.0  # what was told with an answer stands for metrics that are missing or stale so long


@dataclass
class Seen:
    """What is known of one server from outside."""

    watch: Watch = field(default_factory=Watch)
    asked_load_s: float = 0.0
    load: dict[str, float | None] = field(default_factory=dict)  # told with an answer
    told_s: float = -math.inf  # monotonic time of that
    power_w: float | None = None
    power_limit_w: float | None = None
    power_set: bool = False  # a cap was set from here
    power_error: str = ""


class Watcher:
    """Looks at every server again and again, each in a task of its own: one that hangs holds up no other."""

    def __init__(self, gateway: "Gateway") -> None:
        self.gateway = gateway
        self.seen = {row: Seen() for row in gateway.upstreams}
        self.sources: dict[str, PowerSource] = {}

    def start(self) -> None:
        """Begin to watch."""
        for upstream in self.gateway.upstreams.values():
            self.gateway.keep(self.follow(upstream))
            self.gateway.keep(self.scrape(upstream))
        self.gateway.keep(self.meter())

    # ---- readiness

    async def follow(self, upstream: Upstream) -> None:
        """Probe a server until it is ready; while it is, ask after its health."""
        self.gateway.suspend_unseen(upstream)
        while True:
            try:
                if upstream.health is Health.READY:
                    await self.ask_health(upstream)
                else:
                    await self.become_ready(upstream)
            except Exception as error:  # whatever it is, the next look may find it well
                self.not_well(upstream, str(error) or type(error).__name__)
            await asyncio.sleep(self.gateway.settings.probe_s)

    def not_well(self, upstream: Upstream, reason: str) -> None:
        """A look at a server's health failed."""
        if upstream.health is not Health.READY:
            if reason != upstream.reason:
                log.warning("%s is not ready: %s", upstream.spec.name, reason)
            upstream.reason = reason
            return
        upstream.unwell += 1
        upstream.reason = reason
        if upstream.unwell >= BREAK_AFTER:
            self.gateway.suspend(upstream)

    async def ask_health(self, upstream: Upstream) -> None:
        """GET /health of a server that is up."""
        async with self.gateway.session.get(upstream.base + "/health", timeout=aiohttp.ClientTimeout(5.0)) as response:
            if response.status >= 500:
                raise NotReadyError(f"/health says {response.status}")
        upstream.unwell = 0

    async def become_ready(self, upstream: Upstream) -> None:
        """A server is ready once it has generated a token.

        Where it is said to order calls by priority, the probe has one: engines that do not either ignore it, which
        nothing tells, or refuse it, and then none is sent.
        """
        model, longest = await self.ask_model(upstream)
        wanted = upstream.spec.scheduling_policy == "priority"
        status, said = await self.generate_one(upstream, model, wanted)
        if wanted and status == 400 and b"riority" in said:
            wanted = False
            self.gateway.door.notes.append(("no_priority", f"{upstream.spec.name} takes no priority"))
            status, said = await self.generate_one(upstream, model, wanted)
        if status != 200:
            raise NotReadyError(f"one token: {status} {said[:120].decode(errors='replace')}")
        upstream.served_model, upstream.max_model_len, upstream.has_priority = model, longest, wanted
        self.gateway.resume(upstream)

    async def generate_one(self, upstream: Upstream, model: str, with_priority: bool) -> tuple[int, bytes]:
        """Status and body of a request for one token."""
        body = {"model": model, "prompt": "ready?", "max_tokens": 1, "temperature": 0}
        headers = {"x-vllm-priority": "1"} if with_priority else {}
        limit = aiohttp.ClientTimeout(READY_S)
        url = upstream.base + "/v1/completions"
        async with self.gateway.session.post(url, json=body, headers=headers, timeout=limit) as response:
            return response.status, await response.read()

    async def ask_model(self, upstream: Upstream) -> tuple[str, int | None]:
        """The model's name on a server and its context limit."""
        async with self.gateway.session.get(
            upstream.base + "/v1/models", timeout=aiohttp.ClientTimeout(5.0)
        ) as response:
            if response.status != 200:
                raise NotReadyError(f"/v1/models says {response.status}")
            try:
                rows = orjson.loads(await response.read())["data"]
                names = {row["id"]: row.get("max_model_len") for row in rows if isinstance(row["id"], str)}
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                raise NotReadyError("/v1/models is not a list of models") from error
        wanted = upstream.spec.served_model
        if wanted is not None and wanted not in names:
            raise NotReadyError(f"it serves {', '.join(names)}, not {wanted}")
        if not names:
            raise NotReadyError("it serves no model")
        name = wanted or next(iter(names))
        return name, names[name]

    # ---- metrics

    async def scrape(self, upstream: Upstream) -> None:
        """Read a server's metrics, at most once a second."""
        watch = self.seen[upstream.row].watch
        async with Scraper(upstream.base, histograms=False) as scraper:
            while True:
                try:
                    reading = await scraper.read()
                    watch.take(reading)
                    self.gateway.door.has_room(upstream.row, reading.kv_capacity_tokens)
                except MetricsError as error:
                    watch.miss(str(error))
                except Exception:
                    log.exception("the metrics of %s could not be taken in", upstream.spec.name)
                self.publish(upstream)
                await asyncio.sleep(self.gateway.settings.scrape_s)

    def publish(self, upstream: Upstream) -> None:
        """Let the engine show what is known of a server."""
        seen, spec = self.seen[upstream.row], upstream.spec
        reading, watch = seen.watch.latest, seen.watch
        live = self.gateway.door.live
        row: dict[str, Any] = {
            "health": upstream.health.value,
            "reason": upstream.reason,
            "url": spec.url,
            "metrics": watch.state(),
            "metrics_age_s": watch.age_s(),
            "metrics_failure": watch.failure,
            "suspect": watch.suspect(),
            "sent": upstream.sent,
            "faults": dict(upstream.faults),
            "power_error": seen.power_error or None,
            "refined": live.refined.get(upstream.row, 0),
            **live.compared.get(upstream.row, NONE),
        }
        for name in ("engine", "version", "running", "waiting", "kv_used_fraction", "kv_used_tokens", "preemptions"):
            row[f"seen_{name}"] = None if reading is None else getattr(reading, name)
        if watch.state() != "live" and time.monotonic() - seen.told_s < TOLD_FOR_S:
            row |= {f"seen_{name}": value for name, value in seen.load.items() if value is not None}
        live.observed[upstream.row] = row

    def wants_load(self, upstream: Upstream) -> bool:
        """Whether a server is to tell its load with its next answer."""
        seen, now_s = self.seen[upstream.row], time.monotonic()
        if now_s - seen.asked_load_s < HEADER_EVERY_S:
            return False
        seen.asked_load_s = now_s
        return True

    def take_load(self, upstream: Upstream, told: str) -> None:
        """What a server told of its load with an answer."""
        reading = parse_load_header(told)
        self.seen[upstream.row].told_s = time.monotonic()
        self.seen[upstream.row].load = {"kv_used_fraction": reading.kv_used_fraction, "waiting": reading.waiting}

    # ---- power

    async def meter(self) -> None:
        """Read the power of the servers' GPUs once a second; book it, and set the caps that were asked for."""
        metered = [one for one in self.gateway.upstreams.values() if one.spec.power is not None]
        while True:
            await asyncio.gather(*(self.read_power(upstream) for upstream in metered))
            watts = [
                self.seen[i].power_w if i in self.seen else None
                for i in range(len(self.gateway.door.live.fleet.instances))
            ]
            self.gateway.door.meter(watts)
            await asyncio.sleep(1.0)

    async def read_power(self, upstream: Upstream) -> None:
        """One reading of the GPUs of a server; a cap that is not in force is set."""
        seen, spec = self.seen[upstream.row], self.gateway.door.live.fleet.instances[upstream.row]
        try:
            source = self.source(spec.power or "")
            mine = (await source.read())[spec.power_index : spec.power_index + spec.gpus]
            known = [gpu.power_w for gpu in mine if gpu.power_w is not None]
            seen.power_w = sum(known) if len(known) == spec.gpus else None
            limits = [gpu.power_limit_w for gpu in mine if gpu.power_limit_w is not None]
            seen.power_limit_w = sum(limits) if len(limits) == spec.gpus else None
            seen.power_error = "" if mine else f"no GPU {spec.power_index} there"
            for gpu in mine:
                wanted = spec.power_cap_w or gpu.power_limit_max_w
                off = wanted is not None and gpu.power_limit_w is not None and abs(gpu.power_limit_w - wanted) > 1.0
                if off and wanted is not None and gpu.index is not None and (spec.power_cap_w or seen.power_set):
                    await source.set_limit(gpu.index, wanted)
                    seen.power_set = True
        except Exception as error:  # a meter that fails is told of; it ends nothing
            seen.power_w, seen.power_error = None, str(error)

    async def close(self) -> None:
        """Let go of the meters."""
        for source in self.sources.values():
            await source.close()

    def source(self, where: str) -> PowerSource:
        """The meter at an address; one for all servers that share it."""
        if where not in self.sources:
            self.sources[where] = power_source(where, self.gateway.settings.agent_token)
        return self.sources[where]

    # ---- what was served

    def note(self, call: "Call", generated: int) -> None:
        """A call has ended: keep what its server served, for the engine to compare with what the twin says of it."""
        if call.state != COMPLETED or call.instance not in self.seen or generated < 1:
            return
        usage, is_moved = call.usage, call.kv is not None  # KV that came from a prefiller is not computed there
        prompt = usage.input_tokens if usage.input_tokens >= 0 else int(len(call.ask.raw) / self.gateway.bytes_a_token)
        is_seen = call.first_s and call.stream is not None and not is_moved  # an answer in one piece has no first token
        ttft_s = call.first_s - call.sent_s if is_seen else math.nan
        computed = 1 if is_moved else prompt - max(0, usage.cached)
        took_s = time.monotonic() - call.sent_s
        self.gateway.door.live.served.setdefault(call.instance, deque(maxlen=KEPT)).append(
            Served(call.sent_s, computed, generated, ttft_s, took_s)
        )


class NotReadyError(Exception):
    """A server does not answer as one that is ready."""
