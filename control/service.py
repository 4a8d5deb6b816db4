"""The one process that owns the store's journal: engine and jobs composed, from lease to goodbye."""

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from types import FrameType
from typing import Any

from control.config import EngineSettings, GatewaySettings
from control.engine import beside, checkpoint
from control.engine.checkpoint import StaleCheckpointError
from control.engine.door import Door
from control.engine.jobs import start_jobs
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.spare import start_gateway
from control.engine.state import Live, start
from control.errors import HeadwayError, LeaseHeldError, SettingError
from control.gateway.host import GatewayHost
from control.gateway.upstream import check_models
from control.jit import is_warm
from control.model.fleet import Fleet, load_fleet
from control.model.workload import Workload
from control.tuning.warmup import warm_up
from control.workload.arrivals import arrange
from control.workload.load import load_trace
from control.workload.scenarios import WINDOW_IDS, scenario
from storage import lease, readers
from storage.journal import Batch, Journal
from storage.open import Store, open_store

log = logging.getLogger("headway.engine")


def run_engine(
    url: str | None, settings: EngineSettings, fresh: bool, parent: int | None, serving: GatewaySettings | None = None
) -> int:
    """Drive the store at `url` until told to stop (SIGTERM, SIGINT, or the `parent` process gone).

    Raises:
        LeaseHeldError: another engine drives this store.
        InputError, StoreError: settings or store cannot be used.
    """
    stop = Stop(parent)
    fleet, source = fleet_and_source(settings)
    store = open_store(url)
    owner = str(uuid.uuid4())
    try:
        take_lease(store, owner, settings.lease_ttl_s, stop)
        compile_first(store, fleet, source, settings, stop)
        drive(store, fleet, source, settings, fresh, stop, serving or GatewaySettings())
    finally:
        lease.release(store, owner)
        store.close()
    return 0


class Stop:
    """Whether the engine should end: a signal came, or its parent is gone."""

    def __init__(self, parent: int | None) -> None:
        self.parent = parent
        self.signalled = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; the loop ends after its tick."""
        self.signalled.set()

    def __call__(self) -> bool:
        """True when it is time to end."""
        return self.signalled.is_set() or (self.parent is not None and os.getppid() != self.parent)


def fleet_and_source(settings: EngineSettings) -> tuple[Fleet, Source]:
    """The fleet and the work that the settings name.

    Raises:
        InputError: a name or a file is not known.
    """
    given = load_fleet(settings.fleet) if settings.fleet is not None else None
    if given is not None and any(spec.url is not None for spec in given.instances):
        if settings.trace is not None:
            raise SettingError("--trace: real servers take requests over HTTP; 'headway load' replays a trace to them")
        check_models(given)
        return given, Source("gateway", 0, is_gateway=True)
    if settings.trace is not None:
        work: Workload = arrange(load_trace(settings.trace), rate=settings.rate, seed=settings.seed)
        return load_fleet(settings.fleet or "demo-mixed"), Source(settings.trace, settings.seed, trace=work)
    mix = scenario(settings.scenario)
    return load_fleet(settings.fleet or mix.fleet), Source(mix.name, settings.seed, scenario=mix)


def policy_of(settings: EngineSettings, source: Source) -> str:
    """The policy to start with: as asked for, else the scenario's.

    Raises:
        SettingError: the scenario is not known.
    """
    if settings.policy is not None:
        return settings.policy
    return "hexgen" if settings.trace is not None or source.is_gateway else scenario(settings.scenario).policy


def take_lease(store: Store, owner: str, ttl_s: float, stop: Stop) -> None:
    """Acquire the lease; one that was left by a killed engine runs out while we wait.

    Raises:
        LeaseHeldError: its holder is alive.
    """
    deadline = time.monotonic() + ttl_s + 1.0
    beat: float | None = None
    while True:
        try:
            return lease.acquire(store, owner, ttl_s)
        except LeaseHeldError:
            holder = lease.holder(store) or {}
            if is_dead(holder):
                lease.release(store, str(holder["owner"]))
                continue
            beat = holder.get("heartbeat_at") if beat is None else beat
            alive = holder.get("heartbeat_at") != beat
            if alive or stop() or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def is_dead(holder: dict[str, Any]) -> bool:
    """Whether a lease's holder ran on this machine and is gone."""
    if holder.get("host") != socket.gethostname() or "owner" not in holder:
        return False
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def compile_first(store: Store, fleet: Fleet, source: Source, settings: EngineSettings, stop: Stop) -> None:
    """Load the kernels; while they compile for the first time, keep the lease and say so in the store."""
    if is_warm():
        warm_up()
        return
    log.info("compiling the simulator (once; a minute or two)")
    done = threading.Event()
    reporter = threading.Thread(target=report_compiling, args=(store, fleet, source, settings, stop, done), daemon=True)
    reporter.start()
    try:
        warm_up()
    finally:
        done.set()
        reporter.join()


def report_compiling(
    store: Store, fleet: Fleet, source: Source, settings: EngineSettings, stop: Stop, done: threading.Event
) -> None:
    """Write a bare snapshot a second until `done`; a store that fails is met again by the first tick."""
    started = time.time()
    while not done.wait(1.0):
        try:
            if stop():
                end_at_once(store)
            payload = bare_snapshot(fleet, source, settings, started)
            Journal(store).commit(Batch(at=payload["at"], sim_s=0.0, snapshot=payload))
        except HeadwayError:
            return


def end_at_once(store: Store) -> None:
    """Give the lease back and end the process: the compiler in the main thread cannot be interrupted."""
    if store.owner is not None:
        lease.release(store, store.owner)
    os._exit(0)


def bare_snapshot(fleet: Fleet, source: Source, settings: EngineSettings, started: float) -> dict[str, Any]:
    """What is known before the first tick."""
    engine = {"pid": os.getpid(), "started_at": started, "version": version("headway"), "state": "compiling"}
    return {
        "at": time.time(),
        "sim_s": 0.0,
        "engine": engine,
        "scenario": source.name,
        "fleet_name": fleet.name,
        "seed": source.seed,
        "speed": settings.speed,
        "paused": False,
        "policy": policy_of(settings, source),
        "policies": [policy_of(settings, source)],
        "form": source.form,
        "alpha": settings.alpha,
        "load_scale": 1.0,
        "fleet": {},
        "instances": [],
        "tick_ms": 0.0,
    }


def drive(
    store: Store,
    fleet: Fleet,
    source: Source,
    settings: EngineSettings,
    fresh: bool,
    stop: Stop,
    serving: GatewaySettings,
) -> None:
    """Tick until told to stop; say hello and goodbye in the audit."""
    live, events, lost = restored(store, fleet, source, settings, fresh)
    loop = Loop(live, store, settings, version("headway"), stop)
    host = None
    if source.is_gateway:
        loop.door = Door(live, loop.set_aside)
        host = GatewayHost(loop.door, serving)
        live.gateway_url = host.start()
    loop.pending.workflows += lost
    for kind, text in events:
        loop.event(kind, text)
    jobs = start_jobs(store, loop.consider_tuning)
    log.info("live: %s on %s, seed %d", live.source.name, live.fleet.name, live.source.seed)
    gc.collect()
    gc.freeze()  # a full collection looks through the compiler's objects for a third of a second, and all requests wait
    try:
        loop.run()
        if host is not None:
            host.stop()
        loop.event("engine_stopped", "engine stopped")
        loop.record()
    finally:
        loop.tuner.close()
        beside.end(loop)
        jobs.shutdown(wait=True)


def begin(fleet: Fleet, source: Source, settings: EngineSettings) -> Live:
    """A live state from nothing."""
    policy = policy_of(settings, source)
    if source.is_gateway:
        return start_gateway(fleet, policy, settings.alpha)
    return start(fleet, source, policy, settings.alpha, settings.speed)


def restored(
    store: Store, fleet: Fleet, source: Source, settings: EngineSettings, fresh: bool
) -> tuple[Live, list[tuple[str, str]], list[dict[str, Any]]]:
    """The state to go on from, what to tell the audit, and the workflows that could not be continued."""
    saved = Journal(store).load_checkpoint()
    new = [("engine_started", f"engine started: {source.name} on {fleet.name}, seed {source.seed}")]
    if saved is None:
        return begin(fleet, above(store, source), settings), new, []
    at, _, blob = saved
    try:
        if fresh:
            raise StaleCheckpointError("a fresh start was asked for")
        live = checkpoint.load(blob, *checkpoint.chosen(blob, fleet, source))
        gap_s = max(0.0, time.time() - at)
        return live, [("engine_recovered", f"engine went on after {gap_s:.0f} s down")], []
    except StaleCheckpointError as error:
        lost = [row | {"state": "failed", "cause": "engine_replaced"} for row in checkpoint.unfinished(blob)]
        log.info("starting afresh: %s", error)
        live = begin(fleet, above(store, source, lost), settings)
        return live, [*new, ("engine_fresh", f"fresh start ({error}); {len(lost)} workflows ended")], lost


def above(store: Store, source: Source, lost: Sequence[dict[str, Any]] = ()) -> Source:
    """The same work, its workflows numbered above all that the store knows and those that it is about to."""
    known = [readers.highest_workflow(store), *(row["id"] for row in lost)]
    highest = max((number for number in known if number is not None), default=None)
    return source if highest is None else replace(source, first_id=WINDOW_IDS * (highest // WINDOW_IDS + 1))


def set_up_logging() -> None:
    """Log lines to stderr with the time."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("apscheduler", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
