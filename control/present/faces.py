"""Which face the page shows: each state of store and engine has a sentence and, where it helps, an action."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: How to start an engine, as typed into a terminal.
START = "headway up"
#: A lease holder silent for longer than this (s) is not starting any more.
STARTING_S = 60.0


@dataclass(frozen=True)
class Face:
    """A page state: `kind` names its look, `action` is a command line or ""."""

    kind: str  # live | empty | starting | compiling | no_instances | broken
    title: str = ""
    text: str = ""
    action: str = ""


LIVE = Face("live")


def face_of(snapshot: Mapping[str, Any] | None, holder: Mapping[str, Any] | None) -> Face:
    """The face for the newest snapshot payload and the lease holder, either may be None."""
    if snapshot is None:
        return _without_data(holder)
    if snapshot["instances"]:
        return LIVE
    if snapshot["engine"]["state"] == "compiling":
        return Face(
            "compiling",
            "The engine is compiling its kernels",
            "This happens once after an installation or an update and takes up to a minute. "
            "The page goes on by itself.",
        )
    return Face(
        "no_instances",
        "This fleet has no instances",
        f"The engine runs the fleet “{snapshot.get('fleet_name') or 'unnamed'}”, which is empty, so nothing "
        "can be scheduled. Start it with a fleet that has at least one instance.",
        f"{START} --demo demo-mixed",
    )


def broken(reason: str) -> Face:
    """The face of a store that cannot be read; `reason` is the error's one line."""
    return Face(
        "broken",
        "The store cannot be read",
        f"{reason}. Nothing was changed. Point HEADWAY_DB at a readable store, or move the damaged file "
        "aside and start again; the page goes on by itself.",
        START,
    )


def _without_data(holder: Mapping[str, Any] | None) -> Face:
    if holder is not None and holder["age_s"] < STARTING_S:
        return Face(
            "starting",
            "The engine is starting",
            f"Process {holder.get('pid')} on {holder.get('host')} holds this store and has not reported yet. "
            "The page goes on by itself.",
        )
    return Face(
        "empty",
        "No engine has run on this store yet",
        "Start one and its fleet appears here within seconds.",
        START,
    )
