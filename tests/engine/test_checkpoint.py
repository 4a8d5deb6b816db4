"""A saved state goes on as if nothing had happened, or is refused as a whole."""

import io
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from control.engine import checkpoint, view
from control.engine.checkpoint import StaleCheckpointError
from control.engine.orders import obey
from control.engine.source import Source
from control.model.fleet import Fleet
from control.workload.generate import generate
from control.workload.scenarios import scenario
from tests.support.live import Driven, check_live
from tests.support.parity import unlike_tables


def rewritten(blob: bytes, **changed: Any) -> bytes:
    """The checkpoint with some arrays replaced, or left out where None."""
    arrays: dict[str, Any] = dict(np.load(io.BytesIO(zlib.decompress(blob))))
    arrays = {name: value for name, value in (arrays | changed).items() if value is not None}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return zlib.compress(buffer.getvalue())


def head_of(blob: bytes) -> dict[str, Any]:
    """The head of a checkpoint."""
    head: dict[str, Any] = orjson.loads(np.load(io.BytesIO(zlib.decompress(blob)))["head"].tobytes())
    return head


def with_head(blob: bytes, head: Any) -> bytes:
    """The checkpoint with another head."""
    return rewritten(blob, head=np.frombuffer(orjson.dumps(head), np.uint8))


@pytest.mark.parametrize("at_s", [0.0, 59.9, 60.0, 123.456, 300.0])
def test_restored_state_runs_on_to_the_byte(demo_fleet: Fleet, demo_source: Source, demo: Driven, at_s: float) -> None:
    demo.run(120.0 + at_s)
    demo.live.speed, demo.live.paused = 7.0, True
    demo.live.rolling.failed, demo.live.rolling.refused = 3, 5
    view.snapshot(demo.live, 1.0, {}, 0.0)
    other = Driven(checkpoint.load(checkpoint.save(demo.live), demo_fleet, demo_source))
    assert unlike_tables(demo.live.world, other.live.world) == []
    before = len(demo.decisions), len(demo.workflows)
    for end_s in (200.0 + at_s, 300.0 + at_s):
        demo.run(end_s)
        other.run(end_s)
    assert demo.decisions[before[0] :] == other.decisions
    assert demo.workflows[before[1] :] == other.workflows
    assert unlike_tables(demo.live.world, other.live.world) == []
    assert view.snapshot(demo.live, 1.0, {}, 0.0) == view.snapshot(other.live, 1.0, {}, 0.0)
    assert checkpoint.save(demo.live) == checkpoint.save(other.live)


@pytest.mark.parametrize("kind", ["kill", "revive", "drain", "load_scale"])
def test_state_saved_right_after_a_command_runs_on_alike(demo: Driven, kind: str) -> None:
    orders = {
        "kill": [("kill", "h100-0")],
        "revive": [("kill", "l4-0"), ("revive", "l4-0")],
        "drain": [("drain", "h100-0")],
    }
    for name, target in orders.get(kind, []):
        assert obey(demo.live, {"kind": name, "payload": {"instance": target}}).applied
    if kind == "load_scale":
        assert obey(demo.live, {"kind": kind, "payload": {"load_scale": 2.0}}).applied
    demo.note()
    other = Driven(checkpoint.load(checkpoint.save(demo.live), demo.live.fleet, demo.live.source))
    before = len(demo.decisions)
    demo.run(240.0)
    other.run(240.0)
    assert demo.decisions[before:] == other.decisions
    assert unlike_tables(demo.live.world, other.live.world) == []
    check_live(other.live.world)


def test_size_stays_small(demo: Driven) -> None:
    demo.run(600.0)
    assert len(checkpoint.save(demo.live)) < 700_000


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("version", 1, f"version was 1, is {checkpoint.VERSION}"),
        ("source", "agents-a40", "source was agents-a40, is demo-mixed"),
        ("seed", 3, "seed was 3, is 0"),
        ("fleet", "conserve-a40", "fleet was conserve-a40, is demo-mixed"),
        ("instances", [], "other instances"),
        ("arrivals", 5, "other arrivals"),
    ],
)
def test_state_of_another_engine_is_refused(demo: Driven, key: str, value: Any, says: str) -> None:
    blob = checkpoint.save(demo.live)
    with pytest.raises(StaleCheckpointError, match=says):
        checkpoint.load(with_head(blob, head_of(blob) | {key: value}), demo.live.fleet, demo.live.source)


def test_any_changed_setting_of_an_instance_makes_another_fleet(demo: Driven) -> None:
    blob, fleet = checkpoint.save(demo.live), demo.live.fleet
    for change in ({"power_cap_w": 300.0}, {"max_num_batched_tokens": 512}, {"prefix_caching": False}):
        other = replace(fleet, instances=(replace(fleet.instances[0], **change), *fleet.instances[1:]))
        with pytest.raises(StaleCheckpointError, match="other instances"):
            checkpoint.load(blob, other, demo.live.source)


def test_the_same_file_with_other_arrivals_is_another_source(demo_fleet: Fleet) -> None:
    slow, fast = (Source("t.csv", 0, trace=generate("text2sql", 20, 0, rate)) for rate in (1.0, 2.0))
    assert slow.digest != fast.digest
    assert slow.digest == Source("t.csv", 0, trace=generate("text2sql", 20, 0, 1.0)).digest
    assert (
        Source("s", 0, scenario=scenario("demo-mixed")).digest != Source("s", 0, scenario=scenario("agents-a40")).digest
    )


def damaged(blob: bytes) -> dict[str, bytes]:
    """Checkpoints that cannot be read."""
    head = head_of(blob)
    plain = zlib.decompress(blob)
    lacking = {key: value for key, value in head.items() if key != "policy"}
    return {
        "empty": b"",
        "garbage": b"\x00\xffnot a checkpoint",
        "cut": blob[: len(blob) // 2],
        "cut inside": zlib.compress(plain[: len(plain) // 2]),
        "not an archive": zlib.compress(b"PK\x03\x04 no archive"),
        "nothing inside": zlib.compress(b""),
        "a single array": zlib.compress(b"\x93NUMPY\x01\x00"),
        "no head": rewritten(blob, head=None),
        "head is a list": with_head(blob, [1, 2]),
        "head is no JSON": rewritten(blob, head=np.frombuffer(b"{", np.uint8)),
        "a key is missing": with_head(blob, lacking),
        "a table is missing": rewritten(blob, instances=None),
        "no streams": rewritten(blob, streams=None),
    }


def test_damaged_state_is_refused_never_a_crash(demo: Driven) -> None:
    for name, blob in damaged(checkpoint.save(demo.live)).items():
        with pytest.raises(StaleCheckpointError, match=r"unreadable"):
            checkpoint.load(blob, demo.live.fleet, demo.live.source)
        assert isinstance(checkpoint.unfinished(blob), list), name


def test_table_with_other_columns_is_refused(demo: Driven) -> None:
    blob = checkpoint.save(demo.live)
    clock = np.zeros(1, [("now_s", "f8"), ("next_workflow", "i8")])
    with pytest.raises(StaleCheckpointError, match="the table of clock has other columns"):
        checkpoint.load(rewritten(blob, clock=clock), demo.live.fleet, demo.live.source)


def test_workflows_in_flight_are_told_when_their_state_cannot_be_taken_up(demo: Driven) -> None:
    world = demo.live.world
    lost = checkpoint.unfinished(checkpoint.save(demo.live))
    active = world.workflows[world.workflows["state"] == 1]
    assert [row["id"] for row in lost] == active["id"].tolist()
    assert len(lost) > 0
    for row in lost:
        assert row["kind"] in demo.live.names[0]
        assert row["tenant"] in demo.live.names[1]
        assert row["latency_s"] == pytest.approx(120.0 - row["arrival_sim_s"])
        assert row["debt_s"] == pytest.approx(max(0.0, row["latency_s"] - row["slo_s"]))
