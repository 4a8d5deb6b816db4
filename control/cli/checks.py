"""What `headway doctor` looks at: each check says what it found, and what to do where it is bad."""

import os
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from control.errors import HeadwayError

Result = dict[str, Any]
NEEDED = ("streamlit", "plotly", "sqlmodel", "alembic", "numba", "numpy", "apscheduler", "orjson", "click")
LEAST_FREE_GIB = 0.5


def checks(db: str | None) -> list[Result]:
    """All checks in order: name, ok, text."""
    return [
        python_check(),
        *map(package_check, NEEDED),
        kernel_check(),
        store_check(db),
        disk_check(),
        gpu_check(),
    ]


def python_check() -> Result:
    """Python's version."""
    text = ".".join(map(str, sys.version_info[:3]))
    return {"name": "Python", "ok": sys.version_info >= (3, 11), "text": f"{text} (3.11 or newer is needed)"}


def package_check(name: str) -> Result:
    """Whether a package is installed."""
    try:
        return {"name": name, "ok": True, "text": version(name)}
    except PackageNotFoundError:
        return {"name": name, "ok": False, "text": "not installed; run `make setup`"}


def kernel_check() -> Result:
    """Whether the kernels can be cached, and are."""
    from control.jit import JIT_ON, cache_folder, is_warm

    if not JIT_ON:
        return {"name": "kernels", "ok": True, "text": "compilation is switched off (HEADWAY_JIT=0)"}
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return {"name": "kernels", "ok": False, "text": f"{folder}: {error.strerror}; set HEADWAY_CACHE"}
    return {
        "name": "kernels",
        "ok": True,
        "text": "compiled" if is_warm() else "not compiled yet: `headway warm`",
    }


def store_check(db: str | None) -> Result:
    """Whether the store opens, and who drives it."""
    from storage import lease
    from storage.open import open_store

    try:
        store = open_store(db)
    except HeadwayError as error:
        return {"name": "store", "ok": False, "text": str(error)}
    try:
        holder = lease.holder(store)
        driven = "no engine" if holder is None else f"engine pid {holder['pid']}, seen {holder['age_s']:.0f} s ago"
        return {"name": "store", "ok": True, "text": f"{store.url}, {driven}"}
    finally:
        store.close()


def disk_check() -> Result:
    """Free disk space where the cache lies."""
    import platformdirs

    folder = platformdirs.user_data_dir()
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    free_gib = shutil.disk_usage(folder).free / 2**30
    return {"name": "disk", "ok": free_gib >= LEAST_FREE_GIB, "text": f"{free_gib:.1f} GiB free"}


def gpu_check() -> Result:
    """Which GPUs NVML sees; none is fine, the fleet is simulated."""
    import pynvml

    try:
        pynvml.nvmlInit()
        n = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        n = 0
    return {"name": "GPUs", "ok": True, "text": f"{n} local" if n else "none local: the fleet is simulated"}
