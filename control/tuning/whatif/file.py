"""A fork as one file that runs again to the same numbers: tables as NumPy arrays, the rest as JSON.

The file is a line that says what it is, a line with the SHA-256 of the rest, and a compressed zip of arrays without
pickles; `head` holds what is no array. Costs are not kept: they follow from the fleet. The sum tells a file that was
damaged or edited from one that was exported; indices are checked besides, as the kernels trust them.
"""

import hashlib
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
from control.twin.world import World

VERSION = 2
MAGIC = b"headway fork\n"
SUFFIX = ".headway"
LARGEST = 2**31  # bytes of a fork, unpacked
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
    packed = zlib.compress(buffer.getvalue(), 1)
    return MAGIC + digest(packed) + b"\n" + packed


def digest(packed: bytes) -> bytes:
    """The sum of what was exported, in hexadecimal digits."""
    return hashlib.sha256(packed).hexdigest().encode()


def unpacked(blob: bytes) -> bytes:
    """The zip in a file's bytes.

    Raises:
        SettingError: it is no fork, not as it was exported, or too large.
    """
    if not blob.startswith(MAGIC):
        raise SettingError("no fork of this version: expected a file from Export")
    stated, _, packed = blob[len(MAGIC) :].partition(b"\n")
    if stated != digest(packed):
        raise SettingError("damaged or changed since it was exported")
    inflater = zlib.decompressobj()
    found = inflater.decompress(packed, LARGEST)
    if inflater.unconsumed_tail:
        raise SettingError(f"larger than {LARGEST // 2**30} GiB unpacked")
    if not inflater.eof:
        raise SettingError("empty or cut short")
    with zipfile.ZipFile(io.BytesIO(found)) as parts:
        if sum(part.file_size for part in parts.infolist()) > LARGEST:
            raise SettingError(f"larger than {LARGEST // 2**30} GiB unpacked")
    return found


def load_fork(blob: bytes, where: str) -> tuple[Fork, Spec, dict[str, Any], dict[str, Any]]:
    """The fork, the spec, the result and the words out of `save_fork`'s bytes; `where` is the file's name.

    Raises:
        InputError: it is damaged, or of another version.
    """
    try:
        arrays = np.load(io.BytesIO(unpacked(blob)), allow_pickle=False)
        head = orjson.loads(arrays["head"].tobytes())
        if head.get("headway_fork") != VERSION:
            raise SettingError(f"headway_fork = {head.get('headway_fork')!r}: version {VERSION} is accepted")
        given = fork_of(arrays, head)
        for world in (given.world, *(world for world, _ in given.future.values())):
            check_indices(world, given.names)
        return given, read_spec(head["spec"]), head["result"], head["about"]
    except SettingError as error:
        raise InputError(f"{where}: {error}") from error
    except UNREADABLE as error:
        raise InputError(f"{where}: no fork that can be read: expected a file from Export") from error


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


def check_indices(world: World, names: Names) -> None:
    """Raise SettingError where a row points outside its table: kernels check no bounds."""
    n, w, c, s = (len(table) for table in (world.instances, world.workflows, world.calls, world.steps))
    calls, flows, seats = world.calls, world.workflows, np.arange(world.running.shape[1])
    seated = world.running[seats < world.instances["n_running"][:, None]]
    bounds = (
        ("calls.workflow", calls["workflow"], 0, w),
        ("calls.instance", calls["instance"], -1, n),
        ("calls.step", calls["step"], 0, s),
        ("calls.tenant", calls["tenant"], 0, len(names.tenants)),
        *((f"calls.{name}", calls[name], -1, world.slots.shape[1]) for name in ("shared_key", "stream_key")),
        *((f"calls.{name}", calls[name], -1, max(c, 1)) for name in ("next", "prev")),
        ("workflows.first_call", flows["first_call"], 0, c + 1),
        ("workflows.n_calls", flows["first_call"] + flows["n_calls"], 0, c + 1),
        ("workflows.kind", flows["kind"], 0, len(names.kinds)),
        ("workflows.tenant", flows["tenant"], 0, len(names.tenants)),
        ("running", seated, 0, c),
        ("slots", world.slots, -1, len(world.prefixes)),
    )
    for name, values, low, high in bounds:
        if values.size and not (low <= values.min() and values.max() < high):
            raise SettingError(f"{name} holds {values.min()} to {values.max()}: expected {low} to {high - 1}")


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
