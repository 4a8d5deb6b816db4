"""A kernel that two threads call for the first time at once stays as quick as any other."""

import subprocess
import sys

import pytest

from control.jit import JIT_ON

SCRIPT = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from control.policy.cost import chunk_area
with ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda k: chunk_area(k, 1), range(64)))
slow = []
real = chunk_area._compile_for_args
chunk_area._compile_for_args = lambda *args, **named: slow.append(args) or real(*args, **named)
for k in range(10):
    chunk_area(k, 1)
chunk_area(1.5, 1)
chunk_area(1.5, 1)
chunk_area(3, 1)
print(len(slow))
"""


@pytest.mark.skipif(not JIT_ON, reason="kernels are not compiled here")
def test_first_calls_at_once_and_other_types_leave_no_slow_way() -> None:
    told = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120)
    assert int(told.stdout) == 1  # the one call of new types
