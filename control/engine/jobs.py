"""Periodic work beside the loop, on APScheduler: roll-ups and retention of the store."""

import logging
import time
from collections.abc import Callable

from apscheduler.schedulers.background import BackgroundScheduler

from control.errors import StoreError
from storage import retention
from storage.open import Store

log = logging.getLogger(__name__)

ROLL_UP_EVERY_S = 30
TUNE_CHECK_S = 2


def start_jobs(store: Store, consider_tuning: Callable[[], None]) -> BackgroundScheduler:
    """A running scheduler with the engine's periodic jobs; shut it down with the engine."""
    scheduler = BackgroundScheduler(timezone="UTC")
    scheduler.add_job(roll_up, "interval", [store], seconds=ROLL_UP_EVERY_S, id="roll_up", coalesce=True)
    scheduler.add_job(consider_tuning, "interval", seconds=TUNE_CHECK_S, id="tune", coalesce=True)
    scheduler.start()
    return scheduler


def roll_up(store: Store) -> None:
    """Build the coarser samples and delete what is past its keeping time; bounded work a call."""
    try:
        retention.roll_up(store, time.time())
    except StoreError as error:
        log.warning("retention postponed: %s", error)
