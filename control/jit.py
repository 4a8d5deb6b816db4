"""The one door to Numba.

Numba keys its on-disk cache on the decorated file alone, so an edited callee would leave a stale cache behind.
The cache folder is therefore named after a digest of every compiled source and of the flags: any edit starts a
fresh folder. `HEADWAY_JIT=0` runs the same functions as plain Python (coverage, real exceptions);
`HEADWAY_BOUNDSCHECK=1` compiles with index checks.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import platformdirs
from numba.core.caching import _CacheLocator

F = TypeVar("F", bound=Callable[..., Any])

JIT_ON = os.environ.get("HEADWAY_JIT", "1") != "0"
BOUNDSCHECK = os.environ.get("HEADWAY_BOUNDSCHECK", "0") == "1"
FLAGS = {
    "cache": True,
    "nogil": True,
    "fastmath": False,
    "boundscheck": BOUNDSCHECK,
    "error_model": "numpy",
    "_nrt": False,  # kernels allocate nothing, so no array is counted (measured: 13 us an event, 0.22 us without)
    "forceinline": True,  # a world is passed by value: inlined, the copies vanish (measured: 30 times faster)
}
COMPILED_ROOMS = ("model", "policy", "twin")


def _digest() -> str:
    """Digest of all sources that may hold compiled functions, the flags and Numba's version."""
    root = Path(__file__).parent
    sha = hashlib.sha256(f"{numba.__version__} {sorted(FLAGS.items())}".encode())
    for path in [Path(__file__), *(p for room in COMPILED_ROOMS for p in sorted((root / room).glob("*.py")))]:
        sha.update(path.name.encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()[:16]


def cache_folder() -> Path:
    """Folder of the compiled kernels of exactly this source tree."""
    base = os.environ.get("HEADWAY_CACHE") or platformdirs.user_cache_dir("headway")
    return Path(base) / "kernels" / _digest()


def is_warm(*kernels: str) -> bool:
    """Whether kernels of this source tree were compiled before, by default the twin's two (cold, they take minutes).

    Numba keeps those of each checkout apart.
    """
    here = cache_folder() / _CacheLocator.get_suitable_cache_subpath(str(Path(__file__).parent / "twin" / "kernel.py"))
    return not JIT_ON or all(any(here.glob(f"*.{one}-*.nbi")) for one in kernels or ("advance", "act"))


_INSERTING = threading.Lock()  # two threads may call a function for the first time at once

if JIT_ON:
    numba.config.CACHE_DIR = str(cache_folder())


def _apart(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a function that is not inlined."""
    return options | {"forceinline": False}


def _inner(function: F, options: dict[str, Any]) -> F:
    """`function` compiled for callers that are compiled themselves; a call from Python compiles it for Python.

    A wrapper that takes a world of some thirty arrays from Python costs more to compile than most functions here
    (measured: 0.8 s each, two thirds of all compile time), so only what Python calls gets one, on its first call, and
    only that is cached on disk: it holds all it calls. Whole numbers have one type, whether they are literal or not, so
    that no function is compiled once for each constant that it is given.
    """
    bare = {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inside: Any = numba.njit(**options | bare)(function)
    outside: Any = numba.njit(**options | {"no_cfunc_wrapper": True})(function)
    template = inside.get_call_template

    def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        plain = {name: numba.types.unliteral(value) for name, value in kws.items()}
        return template(tuple(numba.types.unliteral(value) for value in args), plain)

    def add_overload(result: Any) -> None:
        inside.overloads[tuple(result.signature.args)] = result

    inserted: set[Any] = set()

    def from_python(*args: Any, **kws: Any) -> Any:
        """Only once for each list of types: of two equal entries neither is found, and every call comes here again."""
        entry = outside._compile_for_args(*args, **kws)
        with _INSERTING:
            for types, result in list(outside.overloads.items()):
                if types not in inserted:
                    inside._insert([one._code for one in types], result.entry_point, result.objectmode)
                    inserted.add(types)
        return entry

    inside.get_call_template = get_call_template
    inside.add_overload = add_overload
    inside._compile_for_args = from_python
    return cast(F, inside)


def compiled(function: F) -> F:
    """Compile `function` in nopython mode, without the GIL, strict floating point; cached on disk."""
    return _inner(function, FLAGS) if JIT_ON else function


def compiled_apart(function: F) -> F:
    """As `compiled`, but not inlined into its callers: for large functions with several callers, and for rare ones.

    Every caller of an inlined function compiles it again; the world's copy at a call costs some 50 ns.
    """
    return _inner(function, _apart(FLAGS)) if JIT_ON else function


def compiled_with_memory(function: F) -> F:
    """As `compiled_apart`, for a function that allocates scratch arrays of its own."""
    return _inner(function, _apart(FLAGS) | {"_nrt": True}) if JIT_ON else function


def compiled_within(function: F) -> F:
    """As `compiled`, but written into its callers before they are compiled, and never compiled by itself.

    For the upper layers: whatever calls large functions compiles them again, so each layer less spares all that is
    below it. Python cannot call it quickly.
    """
    return cast(F, numba.njit(inline="always", nogil=True, error_model="numpy")(function)) if JIT_ON else function
