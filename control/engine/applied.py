"""Settings of stored forks put in force on the live fleet, watched, and taken back.

A run keeps what was applied of it, oldest first: what each changed and, once it was taken back, by which command. So
it can be taken back one by one, and a command that a killed engine obeys a second time does the same again.
"""

from collections.abc import Mapping
from typing import Any

from control.engine.guard import promise, verdict
from control.engine.outcome import Outcome, value
from control.engine.outcome import number as number_in
from control.engine.state import Live
from control.engine.things import Command, Tell, apply_all, stands, take_back
from control.errors import SettingError, StoreBusyError, shown
from control.tuning.whatif.promise import ENDED, REPLACED, ROLLED_BACK, WATCHING, Guard
from storage import runs
from storage.open import Store

Row = dict[str, Any]
MOST_GUARD_MINUTES = 60.0
MOST_KEPT = 40  # applications of one run
MOST_TOLD = 4  # things named in an outcome
BY_GUARD = "guard"
TOLD_EVERY_S = 2.0  # wall s, about, between two tellings of the P95 under watch


def apply(live: Live, store: Store, command: Mapping[str, Any], tell: Tell) -> Outcome:
    """Put a setting of a stored fork in force, and watch it.

    Raises:
        SettingError: it cannot be; all is as it was.
    """
    run = done_run(live, store, command)
    minutes = number_in(command, "guard_minutes", 0.0, MOST_GUARD_MINUTES)
    found = setting_of(run, value(command, "setting"))
    wanted: list[Command] = [(str(kind), dict(payload)) for kind, payload in found["commands"]]
    things, why = apply_all(live, wanted, tell)
    if why:
        return Outcome(False, why)
    if not things:
        raise SettingError(f"{found['name']}: it is in force already")
    let_go(live, store, "another setting was applied")
    entry = {"command": command.get("id"), "setting": found["index"], "name": found["name"], "sim_s": live.now_s}
    kept = [one for one in entries(run) if one["command"] != entry["command"]]
    keep(store, run["id"], {"applied": [*kept, entry | {"things": things}][-MOST_KEPT:]})
    if minutes > 0.0:
        watch_over(live, store, run, found, minutes, things, command.get("id"))
    return Outcome(True, str(found["name"]))


def done_run(live: Live, store: Store, command: Mapping[str, Any]) -> Row:
    """The fork that a command names, which is done and of what runs now.

    Raises:
        SettingError: it is not.
    """
    run = runs.get(store, run_number(command))
    if run is None or run["kind"] != "whatif" or run["result"]["state"] != "done":
        raise SettingError(f"run = {value(command, 'run')!r:.40}: no what-if of that number is done")
    check_same(live, run)
    return run


def run_number(command: Mapping[str, Any]) -> int:
    """The number of the run that a command names.

    Raises:
        SettingError: it is none.
    """
    given = value(command, "run")
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**62:
        raise SettingError(f"run = {shown(given, 40)}: expected the number of a what-if")
    return given


def check_same(live: Live, run: Row) -> None:
    """Refuse a fork of another scenario, seed or fleet, or of a run of the same that has begun anew since.

    Raises:
        SettingError: naming both.
    """
    here: Row = {"scenario": live.source.name, "seed": live.source.seed, "fleet": live.fleet.name}
    there = {key: run["params"].get(key, value) for key, value in here.items()}
    if there != here:
        raise SettingError(f"fork #{run['id']} is of {named(there)}; the engine runs {named(here)}")
    forked_s = float(run["params"].get("sim_s", 0.0))
    if forked_s > live.now_s + 1e-6:
        raise SettingError(
            f"fork #{run['id']} is of {named(there)} at {forked_s:.0f} s; the engine began it anew and is at "
            f"{live.now_s:.0f} s"
        )


def named(origin: Row) -> str:
    """A scenario, its seed and its fleet in words."""
    return f"{origin['scenario']}, seed {origin['seed']}, on {origin['fleet']}"


def setting_of(run: Row, index: Any) -> Row:
    """A setting of a run, which can be applied.

    Raises:
        SettingError: it cannot be, or is not there.
    """
    found = [row for row in run["result"]["settings"] if row["index"] == index and not row["problem"]]
    if not found:
        raise SettingError(f"setting = {shown(index, 40)}: the run has no such setting")
    if not found[0]["applicable"]:
        raise SettingError(f"{found[0]['name']}: {found[0]['why_not']}")
    setting: Row = found[0]
    return setting


def entries(run: Row | None) -> list[Row]:
    """What was applied of a run, oldest first, that which was taken back included."""
    found = run["result"].get("applied") if run is not None and run["kind"] == "whatif" else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def undo(live: Live, store: Store, command: Mapping[str, Any], tell: Tell) -> Outcome:
    """Take back the newest of a fork's applications of which something stands; what was set anew since is left alone.

    Raises:
        SettingError: nothing can be taken back, and why.
    """
    number = run_number(command)
    run = runs.get(store, number)
    told = entries(run)
    still = [one for one in told if one.get("undone_by") in (None, command.get("id"))]
    if run is None or not still:
        raise SettingError(f"run = {number}: nothing of it is applied that could be taken back")
    check_same(live, run)
    entry = next((one for one in reversed(still) if any_stands(live, one)), still[-1])
    taken, alone = take_back(live, entry["things"], tell)
    left_alone = alone_words(alone)
    if not taken:
        raise SettingError(f"fork #{number}, {entry['name']}: nothing can be taken back; {left_alone}")
    if live.guard is not None and (live.guard.run_id, live.guard.command) == (number, entry["command"]):
        let_go(live, store, "what was applied was taken back by hand")
    keep(store, number, {}, (entry["command"], command.get("id")))
    text = f"fork #{number}, {entry['name']}: {', '.join(taken)} taken back" + (f"; {left_alone}" if alone else "")
    return Outcome(True, left_alone, {"kind": "undo_whatif", "target": None, "text": text, "old": None, "new": None})


def alone_words(alone: dict[str, str]) -> str:
    """What was left alone and why, in words; "" for nothing."""
    told = [f"{thing} is left alone: {why}" for thing, why in list(alone.items())[:MOST_TOLD]]
    return "; ".join(told) + (f"; and {len(alone) - MOST_TOLD} more" if len(alone) > MOST_TOLD else "")


def any_stands(live: Live, entry: Row) -> bool:
    """Whether anything is still as an application left it."""
    return any(stands(live, thing, left) for thing, (_, left) in entry["things"].items())


def end_guard(live: Live, store: Store) -> Outcome:
    """Watch no longer; what was applied stays.

    Raises:
        SettingError: nothing is under watch.
    """
    if live.guard is None:
        raise SettingError("nothing is under watch")
    let_go(live, store, "watching was ended by hand")
    return Outcome(True, "")


def watch_over(
    live: Live, store: Store, run: Row, setting: Row, minutes: float, things: dict[str, list[Any]], command: int | None
) -> None:
    """Watch what was applied for so many simulated minutes."""
    low_s, high_s = promise(run["result"], setting, minutes)
    set_to = {"alpha": live.alpha, "policy": live.policy}
    ends_s = live.now_s + 60.0 * minutes
    about = (run["id"], setting["index"], setting["name"], live.now_s, ends_s, low_s, high_s)
    live.guard = Guard(*about, things, command, set_to)
    keep(store, run["id"], {"guard": live.guard.told(WATCHING)})


def let_go(live: Live, store: Store, why: str) -> None:
    """Forget the guard, if there is one."""
    if live.guard is not None:
        keep(store, live.guard.run_id, {"guard": live.guard.told(ENDED, None, why)})
        live.guard = None


def watch(live: Live, store: Store, tell: Tell) -> tuple[str, str] | None:
    """Judge what is under watch; kind and text of an event, where it has come to an end."""
    guard = live.guard
    if guard is None:
        return None
    state, realised_s, why = verdict(live, guard)
    if state == WATCHING:
        say_so_far(live, store, guard, realised_s)
        return None
    live.guard = None
    if state == ROLLED_BACK and not take_back(live, guard.things, tell)[0]:
        state, why = REPLACED, f"{why}; all that it changed was set anew by somebody else"
    undone = (guard.command, BY_GUARD) if state == ROLLED_BACK else None
    keep(store, guard.run_id, {"guard": guard.told(state, realised_s, why)}, undone)
    words = {"rolled_back": "taken back", "kept": "kept its promise", "replaced": "no longer watched"}[state]
    return ("rolled_back" if state == ROLLED_BACK else "guard_" + state), f"{guard.name} {words}: {why}"


def say_so_far(live: Live, store: Store, guard: Guard, realised_s: float | None) -> None:
    """Store the P95 under watch where it has changed, not more often than a page looks."""
    shown_s = None if realised_s is None else float(f"{realised_s:.3g}")
    is_soon = guard.told_p95_s is not None and live.now_s - guard.told_at_s < TOLD_EVERY_S * live.speed
    if shown_s == guard.told_p95_s or is_soon:
        return
    guard.told_p95_s, guard.told_at_s = shown_s, live.now_s
    keep(store, guard.run_id, {"guard": guard.told(WATCHING, shown_s)})


def keep(store: Store, run_id: int, told: Row, undone: tuple[int | None, int | str | None] | None = None) -> None:
    """Write what became of a run's setting into it; a store that is busy loses no more than that.

    `undone` names the command of an application that was taken back, and the one that did it.
    """
    try:
        run = runs.get(store, run_id)
        if run is None:
            return
        if undone is not None:
            applied, by = undone
            told |= {"applied": [e | {"undone_by": by} if e["command"] == applied else e for e in entries(run)]}
        runs.update(store, run_id, run["result"] | told)
    except StoreBusyError:
        return
