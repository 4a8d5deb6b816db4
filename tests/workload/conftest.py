"""Shared fixtures: the laws every workload obeys, files on the spot, and the real data where it is there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from control.model.workload import Workload


def obeys_laws(workload: Workload) -> None:
    """Calls contiguous per workflow in group order, arrivals sorted, names and token parts in bounds."""
    workflows, calls = workload.workflows, workload.calls
    rows = np.repeat(np.arange(len(workflows)), workflows["n_calls"])
    assert np.array_equal(calls["workflow"], rows)
    assert np.array_equal(workflows["first_call"], np.cumsum(workflows["n_calls"]) - workflows["n_calls"])
    assert (workflows["n_calls"] >= 1).all()
    arrivals = workflows["arrival_s"]
    assert np.isnan(arrivals).all() or (np.diff(arrivals) >= 0).all()
    same = np.diff(calls["workflow"]) == 0
    assert np.isin(np.diff(calls["group"])[same], (0, 1)).all()
    assert (calls["group"][workflows["first_call"]] == 0).all()
    for name in ("shared_tokens", "history_tokens"):
        assert ((calls[name] >= 0) & (calls[name] < calls["input_tokens"])).all()
    assert (calls["output_tokens"] >= 1).all()
    assert ((calls["shared_tokens"] > 0) == (calls["shared_key"] >= 0)).all()
    assert (calls["history_tokens"][calls["stream"] < 0] == 0).all()
    assert calls["shared_key"].max() < max(workload.n_shared, 1)
    assert calls["stream"].max() < max(workload.n_streams, 1)
    assert calls["step"].max() < len(workload.steps)
    assert workflows["kind"].max() < len(workload.kinds)
    assert workflows["tenant"].max() < len(workload.tenants)
    assert len(np.unique(workflows["id"])) == len(workflows)
    assert len(workload.ids) in (0, len(workflows))
    assert (calls["tool_s"] >= 0).all()


@pytest.fixture
def laws() -> Callable[[Workload], None]:
    """The law checker."""
    return obeys_laws


@pytest.fixture
def shared() -> Path:
    """The folder of real traces; skips where it is absent."""
    path = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the real traces are not on this machine")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str | bytes], str]:
    """Write text or bytes to a file and give its path."""

    def write(content: str | bytes) -> str:
        path = tmp_path / "trace"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
