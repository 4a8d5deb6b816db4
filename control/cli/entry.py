"""Where the command begins: ctrl-C ends it in one line, whenever it comes.

Python raises KeyboardInterrupt wherever it stands. Where that is inside an import, a library may take it for a part
that is missing and go on without it, or say that it failed to load; where it is inside a callback of C code, nobody
hears of it. So it waits until the import is over, and is raised again where it was lost.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds until an interrupt that waits for an import, or that was lost, is tried again.
AGAIN_S = 0.02
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main() -> int:
    """Run the command line; the exit code. Only this much loads before ctrl-C is heeded."""
    try:
        with heeded_interrupts():
            from control.cli.main import main as run

            return run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # once more, while threads end: at once, without a traceback


@contextmanager
def heeded_interrupts() -> Iterator[None]:
    """For the length of a block, raise KeyboardInterrupt outside of imports and until it is heard.

    Nothing changes where ctrl-C is ignored (as in the background jobs of a shell) or handled otherwise.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not hasattr(signal, "setitimer"):
        yield
        return
    alarm, hook = signal.getsignal(signal.SIGALRM), sys.unraisablehook

    def again_if_lost(lost: "sys.UnraisableHookArgs") -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            hook(lost)

    signal.signal(signal.SIGALRM, raise_outside_imports)
    signal.signal(signal.SIGINT, raise_outside_imports)
    sys.unraisablehook = again_if_lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if signal.getsignal(signal.SIGINT) is raise_outside_imports:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, alarm)
        sys.unraisablehook = hook


def raise_outside_imports(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or try again soon where a module is being imported.

    A command that has since begun to handle interrupts itself, as servers do, is given it as a signal.
    """
    if is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    elif signal.getsignal(signal.SIGINT) is raise_outside_imports:
        raise KeyboardInterrupt
    else:
        signal.raise_signal(signal.SIGINT)


def is_importing(frame: FrameType | None) -> bool:
    """Whether an import is under way at `frame`."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
