"""Compile both simulators on two cores at once.

What Python calls is compiled with all that it calls and kept in the cache. A second process compiles what is done to a
world from outside and the replay; this one compiles the loop. The second process only saves time: whatever it leaves
undone, this one does, and says what is wrong.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from control.cli.processes import store_environment

if TYPE_CHECKING:
    from control.twin.world import World

DONE = "done"
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
    """This process's share, which is the larger one."""
    from control.twin.kernel import advance

    with assistant() as other:
        advance(tiny_world(), 0.0)
        heard(other)


def heard(other: subprocess.Popen[str]) -> str:
    """Wait for the second process's word: DONE, or nothing where it has ended."""
    assert other.stdout is not None
    return other.stdout.readline().strip()


def assist() -> None:
    """The second process's share."""
    from control.tuning.warmup import warm_up_replay
    from control.twin.acts import kill

    threading.Thread(target=end_with_parent, daemon=True).start()
    kill(tiny_world(), 0)
    warm_up_replay()
    print(DONE, flush=True)


def tiny_world() -> "World":
    """A world of the types that every kernel is called with."""
    from control.model.fleet import load_fleet
    from control.twin.pack import build_world
    from control.workload.generate import generate

    return build_world(generate("text2sql", 2, 0), load_fleet("demo-mixed"), "hexgen", journal=True)


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
