"""The one door to Numba.

Numba keys its on-disk cache on the decorated file alone, so an edited callee would leave a stale cache behind.
The cache folder is therefore named after a digest of every compiled source and of the flags: any edit starts a
fresh folder. `HEADWAY_JIT=0` runs the same functions as plain Python (coverage, real exceptions);
`HEADWAY_BOUNDSCHECK=1` compiles with index checks.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import platformdirs

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")

JIT_ON = os.environ.get("HEADWAY_JIT", "1") != "0"
BOUNDSCHECK = os.environ.get("HEADWAY_BOUNDSCHECK", "0") == "1"
FLAGS = {
    "cache": True,
    "nogil": True,
    "fastmath": False,
    "boundscheck": BOUNDSCHECK,
    "error_model": "numpy",
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


def is_warm(kernel: str = "advance") -> bool:
    """Whether a kernel of this source tree was compiled before, by default the twin's (cold, it takes a minute)."""
    return not JIT_ON or any(cache_folder().rglob(f"*.{kernel}-*.nbi"))


if JIT_ON:
    numba.config.CACHE_DIR = str(cache_folder())


def compiled(function: F) -> F:
    """Compile `function` in nopython mode, without the GIL, strict floating point; cached on disk."""
    if not JIT_ON:
        return function
    options: dict[str, Any] = FLAGS
    return cast(F, numba.njit(**options)(function))


def _as_is(array: A) -> A:
    """The array itself: plain Python counts references for us."""
    return array


def compiled_apart(function: F) -> F:
    """As `compiled`, but not inlined into its callers: for large functions with several callers, and for rare ones.

    Every caller of an inlined function compiles it again; the world's copy at a call costs some 50 ns.
    """
    if not JIT_ON:
        return function
    options: dict[str, Any] = FLAGS | {"forceinline": False}
    return cast(F, numba.njit(**options)(function))


#: The same array without its owner: passing it on counts no references. A world holds some twenty arrays, and every
#: call that hands it on would count each of them up and down (measured: 13 us an event, 0.22 us without). The caller
#: keeps the owners alive.
borrowed: Callable[[A], A] = _as_is

if JIT_ON:
    from numba.core import cgutils
    from numba.extending import intrinsic

    def _disowned(typing_context: Any, array: Any) -> Any:
        """Typing and code of `borrowed`: an array's struct with its owners set to null."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(array)(context, builder, args[0])
            view.meminfo = cgutils.get_null_value(view.meminfo.type)
            view.parent = cgutils.get_null_value(view.parent.type)
            return view._getvalue()

        return array(array), codegen

    borrowed = cast(Callable[[A], A], intrinsic(_disowned))
