"""What an engine of before left behind in the store, told as ended by the one that goes on."""

from control.engine.applied import keep
from control.engine.lab import ENGINE_ENDED, end_run
from control.engine.state import Live
from control.tuning.whatif.promise import ENDED, WATCHING
from storage import readers, runs
from storage.open import Store

UNWATCHED = "the engine began anew while it was watched"


def end_forks(store: Store, live: Live) -> None:
    """End the forks that nobody runs ahead any more, and the guards that no longer watch.

    Raises:
        StoreError: the store failed.
    """
    watched = live.guard.run_id if live.guard is not None else None
    for run in runs.unfinished(store, "whatif"):
        end_run(store, run["id"], ENGINE_ENDED)
        guard = run["result"].get("guard") or {}
        if guard.get("state") == WATCHING and run["id"] != watched:
            keep(store, run["id"], {"guard": guard | {"state": ENDED, "why": UNWATCHED}})


def shadows_before(store: Store) -> list[str]:
    """The policies that ran in the shadow when the engine of before ended.

    Raises:
        StoreError: the store failed.
    """
    chosen = readers.newest_event(store, "shadows")
    names = chosen["new"] if chosen is not None else None
    return [str(name) for name in names] if isinstance(names, list) else []
