"""Compile both simulators on two cores at once.

Numba keeps every compiled function in the cache by itself, and a caller takes its callees from there. A second process
compiles the handling of events; this one compiles the planning of batches, waits, and then compiles the loop around
both. The second process only saves time: whatever it leaves undone, this one does, and says what is wrong.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from control.cli.processes import store_environment

HALF_DONE = "half done"
ASSISTANT = (sys.executable, "-P", "-m", "control.cli.precompile")


def compile_all() -> None:
    """Compile what is missing of both simulators, on two cores where there are two; then load all."""
    from control.tuning.warmup import is_all_warm, warm_up, warm_up_replay

    if not is_all_warm() and cores() > 1:
        compile_beside_another()
    warm_up()
    warm_up_replay()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_beside_another() -> None:
    """This process's share, the loop last: it holds all that either process has compiled."""
    from control.tuning.warmup import warm_up_replay
    from control.twin import handlers, kernel

    with assistant() as other:
        world = tiny_world()
        compile_for(kernel.plan_dirty, world)
        compile_for(handlers.on_arrival, world)
        compile_for(handlers.on_tool_return, world, 0)
        warm_up_replay()
        heard(other)
        compile_for(kernel.advance, world, 0.0)
        other.wait()


def heard(other: subprocess.Popen[str]) -> str:
    """Wait for the second process's word: HALF_DONE, or nothing where it has ended."""
    assert other.stdout is not None
    return other.stdout.readline().strip()


def assist() -> None:
    """The second process's share: the handlers, those of the loop first."""
    from control.twin import handlers, kernel

    threading.Thread(target=end_with_parent, daemon=True).start()
    world = tiny_world()
    compile_for(handlers.on_run_end, world, 0)
    compile_for(kernel.handle_next, world, 0.0)
    print(HALF_DONE, flush=True)
    compile_for(handlers.kill, world, 0)
    compile_for(handlers.revive, world, 0)


def tiny_world() -> Any:
    """A world of the types that every kernel is called with."""
    from control.model.fleet import load_fleet
    from control.twin.pack import build_world
    from control.workload.generate import generate

    return build_world(generate("text2sql", 2, 0), load_fleet("demo-mixed"), "hexgen", journal=True)


def compile_for(kernel: Callable[..., Any], *arguments: object) -> None:
    """Have `kernel` in the cache for arguments of these types, without running it."""
    dispatcher: Any = kernel
    dispatcher.compile(tuple(dispatcher.typeof_pyval(argument) for argument in arguments))


@contextmanager
def assistant() -> Iterator[subprocess.Popen[str]]:
    """The second process; it ends with the block, and with this process. Ctrl-C reaches only the first."""
    with subprocess.Popen(
        ASSISTANT,
        env={**os.environ, **store_environment(None)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as other:
        try:
            yield other
        finally:
            other.kill()


def end_with_parent() -> None:
    """End this process once nobody holds the other end of its standard input."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    assist()
