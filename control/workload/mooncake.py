"""Mooncake traces: requests with the ids of their 512-token prefix blocks (Mooncake, FAST '25 release)."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from control.errors import TraceError
from control.model.workload import Workload, empty_calls, empty_workflows
from control.workload import jsonl
from control.workload.build import number, settle
from control.workload.history import at_least_one
from control.workload.table import Ints

COLUMNS = ("timestamp", "input_length", "output_length", "hash_ids")
BLOCK_TOKENS = 512


class _Trie:
    """Prefixes as nodes: a node is a block after the node of the blocks before it; node 0 is no block."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, int], int] = {}

    def path(self, blocks: list[int]) -> list[int]:
        """The nodes along `blocks`, made where they are new."""
        nodes, at = [], 0
        for block in blocks:
            at = self._next.setdefault((at, block), len(self._next) + 1)
            nodes.append(at)
        return nodes


class _Reuse(NamedTuple):
    """What each request shares, in whole blocks; -1 where there is no stream or shared prefix."""

    stream: Ints
    history_blocks: Ints
    shared_key: Ints
    shared_blocks: Ints


def read_mooncake(path: str, text: str) -> Workload:
    """Each row a workflow of one call, kind "chat"; timestamps are ms.

    A request whose whole blocks extend those of an earlier request joins its stream, and its history is
    the whole-block prefix it has in common with the stream's last request. The longest prefix that also
    stands in a request outside the stream is its shared prefix, one key per trie node: requests that part
    at different depths of one prompt count as holders of different prefixes. Raises TraceError.
    """
    rows = [_row(path, line, fields) for line, fields in jsonl.objects(path, text)]
    late = any(b[0] < a[0] for a, b in pairwise(rows))
    rows.sort(key=lambda row: row[0])
    n = len(rows)
    inputs = np.array([row[1] for row in rows], dtype=np.int64)
    outputs, problems = at_least_one(np.array([row[2] for row in rows]), "output_length")
    problems += ("requests are not in order of timestamp; sorted",) if late else ()
    reuse = _reuse([row[3][: row[1] // BLOCK_TOKENS] for row in rows])
    workflows, calls = empty_workflows(n), empty_calls(n)
    workflows["arrival_s"] = np.array([row[0] - rows[0][0] for row in rows]) / 1000.0
    calls["workflow"] = np.arange(n)
    calls["input_tokens"], calls["output_tokens"] = inputs, outputs
    calls["stream"] = reuse.stream
    calls["history_tokens"] = np.minimum(reuse.history_blocks * BLOCK_TOKENS, inputs - 1)
    calls["shared_key"] = reuse.shared_key
    calls["shared_tokens"] = np.minimum(reuse.shared_blocks * BLOCK_TOKENS, inputs - 1)
    n_shared, n_streams = int(reuse.shared_key.max()) + 1, int(reuse.stream.max()) + 1
    names = (("chat",), ("default",), ("chat",))
    return settle(Workload(path, "mooncake", workflows, calls, *names, n_shared, n_streams, (), problems))


def _row(path: str, line: int, fields: jsonl.Fields) -> tuple[float, int, int, list[int]]:
    arrival_ms = jsonl.real(path, line, fields, "timestamp", low=0)
    inputs = jsonl.whole(path, line, fields, "input_length", low=1)
    outputs = jsonl.whole(path, line, fields, "output_length", low=0)
    blocks = fields.get("hash_ids")
    if not isinstance(blocks, list) or any(type(block) is not int for block in blocks):
        what = f"hash_ids = {jsonl.shorten(blocks)}: expected a list of whole numbers"
        raise TraceError(path, line, what)
    return arrival_ms, inputs, outputs, blocks


def _reuse(blocks: list[list[int]]) -> _Reuse:
    trie = _Trie()
    paths = [trie.path(row) for row in blocks]
    stream, history = _streams(paths)
    node, shared = _shared(paths, stream)
    used = np.bincount(stream[stream >= 0], minlength=1)
    alone = (stream < 0) | (used[np.maximum(stream, 0)] < 2)
    numbers, names = number(np.where(alone, -1, stream).tolist())
    keys, nodes = number(np.where(shared > 0, node, -1).tolist())
    return _Reuse(_without_none(numbers, names), history, _without_none(keys, nodes), shared)


def _streams(paths: list[list[int]]) -> tuple[Ints, Ints]:
    """Stream of each request (every request with a whole block starts or joins one) and history, blocks."""
    ends: dict[int, int] = {}  # node at which an earlier request ended -> its stream
    last: dict[int, list[int]] = {}  # stream -> path of its last request
    stream = np.full(len(paths), -1, np.int64)
    history = np.zeros(len(paths), np.int64)
    for row, path in enumerate(paths):
        if not path:
            continue
        joined = next((ends[node] for node in reversed(path) if node in ends), None)
        stream[row] = len(last) if joined is None else joined
        history[row] = 0 if joined is None else _common(path, last[joined])
        ends[path[-1]] = int(stream[row])
        last[int(stream[row])] = path
    return stream, history


def _common(path: list[int], other: list[int]) -> int:
    """Number of leading nodes two paths have in common."""
    pairs = zip(path, other, strict=False)
    return next((depth for depth, (a, b) in enumerate(pairs) if a != b), min(len(path), len(other)))


def _shared(paths: list[list[int]], stream: Ints) -> tuple[Ints, Ints]:
    """Deepest node of each request that another stream passes too, and its depth in blocks."""
    owner: dict[int, int] = {}
    common: set[int] = set()
    for row, path in enumerate(paths):
        for node in path:
            if owner.setdefault(node, int(stream[row])) != stream[row]:
                common.add(node)
    depth = np.array([sum(node in common for node in path) for path in paths], dtype=np.int64)
    deepest = [path[d - 1] if d else -1 for path, d in zip(paths, depth.tolist(), strict=True)]
    return np.array(deepest, dtype=np.int64), depth


def _without_none(numbers: Ints, names: list[object]) -> Ints:
    """Renumber so that the name -1 is number -1 and the others stay dense."""
    if -1 not in names:
        return numbers
    none = names.index(-1)
    return np.where(numbers == none, -1, numbers - (numbers > none))
