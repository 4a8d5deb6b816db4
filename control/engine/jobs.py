"""Periodic work beside the loop, on APScheduler: roll-ups and retention of the store."""

import logging
import time
from collections.abc import Callable

from apscheduler.schedulers.background import BackgroundScheduler

from control.errors import LeaseHeldError, StoreError
from storage import lease, retention
from storage.open import Store

log = logging.getLogger(__name__)

ROLL_UP_EVERY_S = 30
HEARTBEAT_S = 1  # a long tick or commit must not look like an engine that died
TUNE_CHECK_S = 2


def start_jobs(store: Store, consider_tuning: Callable[[], None]) -> BackgroundScheduler:
    """A running scheduler with the engine's periodic jobs; shut it down with the engine."""
    scheduler = BackgroundScheduler(timezone="UTC")
    scheduler.add_job(roll_up, "interval", [store], seconds=ROLL_UP_EVERY_S, id="roll_up", coalesce=True)
    scheduler.add_job(consider_tuning, "interval", seconds=TUNE_CHECK_S, id="tune", coalesce=True)
    scheduler.add_job(heartbeat, "interval", [store], seconds=HEARTBEAT_S, id="heartbeat", coalesce=True)
    scheduler.start()
    return scheduler


def roll_up(store: Store) -> None:
    """Build the coarser samples and delete what is past its keeping time; bounded work a call."""
    try:
        retention.roll_up(store, time.time())
    except StoreError as error:
        log.warning("retention postponed: %s", error)


def heartbeat(store: Store) -> None:
    """Keep the lease while the loop is busy; whether it was lost, the loop learns at its next commit."""
    try:
        if store.owner is not None:
            lease.heartbeat(store, store.owner)
    except (StoreError, LeaseHeldError) as error:
        log.debug("heartbeat: %s", error)
