"""A fork as one file that runs again to the same numbers: tables as NumPy arrays, the rest as JSON.

The file is a compressed zip of arrays without pickles; `head` holds what is no array. Costs are not kept: they follow
from the fleet.
"""

import io
import zipfile
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np
import orjson

from control.errors import InputError, SettingError
from control.model.fleet import Fleet, InstanceSpec
from control.model.workload import CALL
from control.tuning.arrays import world_arrays, world_of
from control.tuning.episodes import Arrival, Episode, Names
from control.tuning.whatif.fork import Fork
from control.tuning.whatif.spec import Spec, read_spec
from control.twin.caps import Switch

VERSION = 1
SUFFIX = ".headway"
UNREADABLE = (zlib.error, zipfile.BadZipFile, ValueError, LookupError, TypeError, AttributeError, OSError, EOFError)
HEADS = ("arrival_s", "slo_s", "tenant", "kind", "go_on")


def save_fork(given: Fork, spec: Spec, result: dict[str, Any], about: dict[str, Any]) -> bytes:
    """The fork with what was asked of it, what came out, and words about where it is from."""
    head = {
        "headway_fork": VERSION,
        "spec": spec.as_dict(),
        "result": result,
        "about": about,
        "fleet": {"name": given.fleet.name, "instances": [asdict(spec) for spec in given.fleet.instances]},
        "switches": [list(switch) for switch in given.switches],
        "names": [list(part) for part in given.names[:3]],
        "n_shared": given.names.n_shared,
        "policy": given.policy,
        "form": given.form,
        "window_s": given.window_s,
        "since_s": given.since_s,
        "loads": list(given.future),
    }
    arrays: dict[str, Any] = {"head": np.frombuffer(orjson.dumps(head), np.uint8), "recent": given.recent}
    arrays |= {"streams": given.streams, "declared": given.declared}
    arrays |= world_arrays(given.world, "world.")
    for k, (world, streams) in enumerate(given.future.values()):
        arrays |= world_arrays(world, f"future{k}.") | {f"future{k}.streams": streams}
    arrays |= arrival_arrays("arrivals", given.arrivals) | arrival_arrays("contents", given.contents)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return zlib.compress(buffer.getvalue(), 1)


def load_fork(blob: bytes, where: str) -> tuple[Fork, Spec, dict[str, Any], dict[str, Any]]:
    """The fork, the spec, the result and the words out of `save_fork`'s bytes; `where` is the file's name.

    Raises:
        InputError: it is damaged, or of another version.
    """
    try:
        arrays = np.load(io.BytesIO(zlib.decompress(blob)), allow_pickle=False)
        head = orjson.loads(arrays["head"].tobytes())
        if head.get("headway_fork") != VERSION:
            raise SettingError(f"headway_fork = {head.get('headway_fork')!r}: version {VERSION} is accepted")
        return fork_of(arrays, head), read_spec(head["spec"]), head["result"], head["about"]
    except SettingError as error:
        raise InputError(f"{where}: {error}") from error
    except UNREADABLE as error:
        raise InputError(
            f"{where}: no fork that can be read ({type(error).__name__}): expected a file from Export"
        ) from error


def fork_of(arrays: Any, head: dict[str, Any]) -> Fork:
    """The fork out of a file's arrays and head."""
    fleet = Fleet(head["fleet"]["name"], tuple(InstanceSpec(**spec) for spec in head["fleet"]["instances"]))
    switches = tuple(Switch(*row) for row in head["switches"])
    kinds, tenants, steps = (tuple(part) for part in head["names"])
    futures = {}
    for k, load in enumerate(head["loads"]):
        futures[float(load)] = (world_of(arrays, fleet, switches, f"future{k}."), arrays[f"future{k}.streams"])
    return Fork(
        world=world_of(arrays, fleet, switches, "world."),
        streams=arrays["streams"],
        declared=arrays["declared"],
        fleet=fleet,
        switches=switches,
        names=Names(kinds, tenants, steps, int(head["n_shared"])),
        policy=head["policy"],
        form=head["form"],
        window_s=head["window_s"],
        recent=arrays["recent"],
        since_s=head["since_s"],
        arrivals=arrivals_of("arrivals", arrays),
        contents=[one for one in arrivals_of("contents", arrays) if isinstance(one, Episode)],
        future=futures,
    )


def arrival_arrays(name: str, arrivals: Any) -> dict[str, Any]:
    """Arrivals and episodes as three arrays: heads, number of calls (-1: not known), calls one after the other."""
    heads = np.array([[getattr(a, key) for key in HEADS] for a in arrivals], np.float64).reshape(len(arrivals), 5)
    sizes = np.array([len(a.calls) if isinstance(a, Episode) else -1 for a in arrivals], np.int64)
    parts = [a.calls for a in arrivals if isinstance(a, Episode)]
    calls = np.concatenate(parts) if parts else np.zeros(0, CALL)
    return {f"{name}.heads": heads, f"{name}.sizes": sizes, f"{name}.calls": calls}


def arrivals_of(name: str, arrays: Any) -> list[Arrival | Episode]:
    """Arrivals and episodes out of their arrays."""
    heads, sizes, calls = (arrays[f"{name}.{part}"] for part in ("heads", "sizes", "calls"))
    found: list[Arrival | Episode] = []
    first = 0
    for head, size in zip(heads.tolist(), sizes.tolist(), strict=True):
        one = Arrival(head[0], head[1], int(head[2]), int(head[3]), int(head[4]))
        if size < 0:
            found.append(one)
            continue
        found.append(Episode(*one, calls[first : first + size]))
        first += size
    return found
