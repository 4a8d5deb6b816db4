"""`headway calibrate`: measures a server over HTTP, writes a profile, and a fleet runs on it."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.model.calibrated import read_profile
from control.model.fleet import load_fleet
from tests.cli.conftest import Headway
from tests.support.tiny_engine import TinyEngine, serving


@pytest.fixture
def tiny() -> Iterator[str]:
    """The address of a small engine that serves on another thread."""
    started, address, loop, over = threading.Event(), [""], asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serving(TinyEngine(base_ms=1.0)) as address[0]:
            started.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(20.0)
    yield address[0]
    loop.call_soon_threadsafe(over.set)
    thread.join(20.0)
    loop.close()


def test_a_profile_is_written_and_a_fleet_takes_it(headway: Headway, tmp_path: Path, tiny: str) -> None:
    limits = ("--gpu", "cpu-small", "--max-num-seqs", 4, "--max-num-batched-tokens", 512)
    said = headway("calibrate", "--url", tiny, *limits, "--budget-s", 3, "--out", "p.json", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["profile"]["gpu"] == "cpu-small"
    assert told["fit"]["all"]["points"] == told["points"]
    assert told["profile"]["notes"][-1] == "power of 'cpu-small' is not known: it counts as 0 W"
    found = read_profile(str(tmp_path / "p.json"))
    assert found.limits["max_num_seqs"] == 4
    (tmp_path / "fleet.toml").write_text('[[instance]]\nprofile = "p.json"\n')
    spec = load_fleet(str(tmp_path / "fleet.toml")).instances[0]
    assert (spec.gpu, spec.model, spec.max_num_batched_tokens) == ("cpu-small", "tiny", 512)
    again = headway("calibrate", "--url", tiny, "--out", "p.json")
    assert (again.code, again.err.strip()) == (2, "p.json: the file exists; pass --force to replace it")


def test_bad_input_is_one_line(headway: Headway) -> None:
    for arguments, what in (
        (("--url", "nowhere"), "--url = 'nowhere': expected http://HOST:PORT"),
        (("--url", "http://127.0.0.1:9"), "expected an OpenAI-compatible server"),
        (("--url", "http://127.0.0.1:9", "--budget-s", 0), "--budget-s = 0"),
        (("--url", "http://127.0.0.1:9", "--gpus", 0), "--gpus = 0"),
    ):
        said = headway("calibrate", *arguments, "--json")
        assert (said.code, said.out, len(said.err.strip().splitlines())) == (2, "", 1), said
        assert what in said.err
