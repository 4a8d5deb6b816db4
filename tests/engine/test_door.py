"""Requests to real servers through the door: what waits, what is sent where, and that the books close."""

from collections.abc import Iterator

import pytest

from control.engine.door import Door
from control.engine.spare import SIZES, start_gateway
from control.engine.tickets import Identity
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import (
    ABORTED,
    ALL_FULL,
    BY_CLIENT,
    CALL_ENDED,
    CANCELLED,
    COMPLETED,
    DRAINING,
    FAILED,
    NO_INSTANCE,
    SERVER_LOST,
)
from control.twin.acts import cancel, drain
from tests.support.door import Scene, sent


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.check_closed()


def test_calls_beyond_the_window_wait_and_go_when_a_seat_is_free(scene: Scene) -> None:
    where: dict[int, int] = {}
    for _ in range(5):
        where |= sent(scene.enter()[1])
    assert len(where) == 4
    assert sorted(where.values()) == [0, 0, 1, 1]
    later = sent(scene.finish(next(iter(where))))
    assert len(later) == 1
    for uid in list(where)[1:] + list(later):
        scene.finish(uid)
    scene.drain()
    assert [row["state"] for row in scene.ended] == ["completed"] * 5


def test_the_more_urgent_call_goes_first(scene: Scene) -> None:
    first = [scene.enter()[0] for _ in range(4)]
    relaxed, _ = scene.enter(Identity(slo_s=900.0))
    urgent, _ = scene.enter(Identity(slo_s=1.0))
    instance = {uid: int(scene.live.world.calls[scene.door.rows[uid]]["instance"]) for uid in (relaxed, urgent)}
    order: list[int] = []
    for uid in first:
        order += sent(scene.finish(uid))
    assert set(order) == {relaxed, urgent}
    if instance[relaxed] == instance[urgent]:
        assert order[0] == urgent
    for uid in order:
        scene.finish(uid)


def test_a_workflow_grows_by_its_requests_and_ends_when_told(scene: Scene) -> None:
    who = Identity("w", "text2sql", "revise", "t", slo_s=60.0)
    for k in range(3):
        uid, orders = scene.enter(who._replace(is_last=k == 2))
        assert uid in sent(orders)
        scene.finish(uid)
        scene.clock.now_s += 5.0
    scene.drain()
    assert scene.live.flows == {}
    (row,) = scene.ended
    assert row["calls"] == 3
    assert row["kind"] == "text2sql"
    assert row["latency_s"] == pytest.approx(13.0)
    assert row["state"] == "completed"


def test_an_idle_workflow_is_closed_at_its_last_answer(scene: Scene) -> None:
    uid, _ = scene.enter(Identity("w", slo_s=60.0))
    scene.finish(uid)
    scene.clock.now_s += 1000.0
    scene.door.close_idle(300.0)
    scene.drain()
    assert scene.ended[0]["latency_s"] == pytest.approx(1.0)


def test_a_workflow_outgrows_its_place_with_calls_open(scene: Scene) -> None:
    who = Identity("w", slo_s=60.0)
    open_calls = [scene.enter(who)[0] for _ in range(SIZES[1] + 9)]
    waiting = list(open_calls)
    while waiting:
        running = [uid for uid in waiting if scene.live.world.calls[scene.door.rows[uid]]["started_s"] >= 0]
        assert running
        for uid in running:
            scene.finish(uid)
            waiting.remove(uid)
    scene.enter(who._replace(is_last=True))
    scene.finish(scene.live.counted[0])
    scene.drain()
    assert scene.ended[0]["calls"] == SIZES[1] + 10


def test_more_requests_than_spare_rows(scene: Scene) -> None:
    for _ in range(3000):
        scene.finish(scene.enter()[0])
    scene.drain()
    assert len(scene.ended) == 3000


def test_a_call_that_failed_goes_elsewhere_and_then_fails(scene: Scene) -> None:
    uid, orders = scene.enter()
    first = sent(orders)[uid]
    orders = scene.door.again(uid, [first])
    assert sent(orders) == {uid: 1 - first}
    orders = scene.door.again(uid, [first, 1 - first])
    assert [(order.kind, order.cause) for order in orders] == [(CALL_ENDED, NO_INSTANCE)]
    uid, orders = scene.enter()
    assert scene.door.ends(uid, FAILED, SERVER_LOST) == []
    uid, orders = scene.enter()
    scene.door.ends(uid, FAILED, ALL_FULL)
    scene.drain()
    assert [row["cause"] for row in scene.ended] == ["no_instance", "server_lost", "all_full"]


def test_who_waits_for_a_dead_server_goes_to_the_other(scene: Scene) -> None:
    uids = [scene.enter()[0] for _ in range(8)]
    calls = scene.live.world.calls
    orders = scene.door.suspend(0)
    assert not sent(orders)
    on_one = [uid for uid in uids if calls[scene.door.rows[uid]]["instance"] == 1]
    assert len(on_one) == 6
    lost = [uid for uid in uids if uid not in on_one]
    for uid in lost:
        scene.door.again(uid, [0])
    left = set(uids)
    while left:
        for uid in list(left):
            if scene.live.world.calls[scene.door.rows[uid]]["state"] in (2, 3):
                scene.finish(uid)
                left.discard(uid)
    scene.door.resume(0)
    uid, orders = scene.enter()
    scene.finish(uid)


def test_clients_that_leave_free_their_place(scene: Scene) -> None:
    uids = [scene.enter()[0] for _ in range(6)]
    for uid in uids:
        if scene.live.world.calls[scene.door.rows[uid]]["started_s"] >= 0:
            continue
        scene.door.give_up(uid)
    for uid in uids[:4]:
        scene.door.ends(uid, CANCELLED, BY_CLIENT)
    scene.drain()
    assert {row["state"] for row in scene.ended} <= {"cancelled", "refused"}
    assert len(scene.ended) == 6


def test_room_is_made_while_the_last_call_of_a_workflow_is_open(scene: Scene) -> None:
    who = Identity("w", slo_s=60.0)
    scene.finish(scene.enter(who)[0])
    last, _ = scene.enter(who._replace(is_last=True))
    for _ in range(1100):
        scene.finish(scene.enter()[0])
    scene.finish(last)
    scene.drain()
    assert scene.live.flows == {}


def test_a_client_that_leaves_just_when_its_call_is_sent_keeps_no_seat(scene: Scene) -> None:
    uids = [scene.enter()[0] for _ in range(5)]
    (sent_now,) = sent(scene.finish(uids[0]))
    scene.door.give_up(sent_now)  # nobody has read the order
    for uid in uids[1:]:
        scene.door.give_up(uid)


def test_a_call_that_was_given_up_is_not_sent_again(scene: Scene) -> None:
    uid, orders = scene.enter(Identity("w"))
    w = scene.live.flows["w"].row
    cancel(scene.live.world, w)
    orders = scene.door.again(uid, [sent(orders)[uid]])
    assert [(order.kind, order.cause) for order in orders] == [(ABORTED, BY_CLIENT), (CALL_ENDED, BY_CLIENT)]


def test_what_is_told_of_calls_that_have_ended_is_not_heard(scene: Scene) -> None:
    uid, _ = scene.enter()
    scene.finish(uid)
    scene.door.first_token(uid, 5)
    assert scene.door.ends(uid, COMPLETED, 0) == scene.door.again(uid, [0]) == scene.door.prefilled(uid) == []


def test_progress_of_a_leg_that_failed_is_not_booked_on_the_next(scene: Scene) -> None:
    blocking = [scene.enter()[0] for _ in range(4)]
    instance = scene.live.world.calls["instance"]
    first = int(instance[scene.door.rows[blocking[0]]])
    scene.door.again(blocking[0], [first])  # it waits for the other server now
    scene.door.first_token(blocking[0], 7)
    assert scene.live.world.calls[scene.door.rows[blocking[0]]]["emitted"] == 0
    for uid in [*blocking[1:], blocking[0]]:
        scene.finish(uid)


def test_what_the_server_counted_counts_though_its_stream_had_more_events(scene: Scene) -> None:
    uid, _ = scene.enter()
    scene.door.first_token(uid, 12)
    assert scene.live.world.instances["decode_tokens"].sum() == 11  # the prefill yields the first
    scene.finish(uid, tokens=10)
    scene.drain()
    assert scene.live.world.instances["decode_tokens"].sum() == 9


def test_a_drain_outlives_a_failure(scene: Scene) -> None:
    drain(scene.live.world, 0)
    scene.door.suspend(0)
    scene.door.resume(0)
    assert scene.live.world.instances["state"][0] == DRAINING
    uids = [scene.enter()[0] for _ in range(2)]
    assert {int(scene.live.world.calls[scene.door.rows[uid]]["instance"]) for uid in uids} == {1}
    for uid in uids:
        scene.finish(uid)


def test_a_conversation_moves_its_kv_once_and_stays() -> None:
    specs = (
        InstanceSpec("p", "A100", "Llama-3.1-8B", role="prefill", url="http://p"),
        InstanceSpec("d", "A100", "Llama-3.1-8B", role="decode", url="http://d"),
    )
    scene = Scene("conserve")
    scene.live = start_gateway(Fleet("pair", specs), "conserve", 0.5)
    scene.door = Door(scene.live, scene.drain, scene.clock)
    who = Identity("w", session="s", slo_s=60.0)
    tokens = 2000
    for turn in range(5):
        uid, orders = scene.enter(who, tokens)
        if turn == 0:
            assert sent(orders) == {uid: 0}
            scene.clock.now_s += 0.5
            orders = scene.door.prefilled(uid)
        assert sent(orders) == {uid: 1}
        scene.door.first_token(uid)
        scene.clock.now_s += 1.0
        assert scene.door.ends(uid, COMPLETED, 0, tokens, 100, -1) == []
        tokens += 150
    assert list(scene.live.world.instances["sent"]) == [1, 0]
    assert scene.live.world.clock[0]["breaks"] == 0
    assert int(scene.live.world.instances["pinned"].sum()) == 1
    scene.door.close_idle(0.0)
    scene.drain()
    scene.check_closed()
    assert scene.live.world.instances["cached_tokens"][1] > 7000


def test_many_open_workflows_are_closed_sooner(scene: Scene) -> None:
    for k in range(3000):
        uid, _ = scene.enter(Identity(f"w{k}", slo_s=60.0))
        scene.finish(uid)
    scene.clock.now_s += 150.0
    scene.door.close_idle(300.0)
    scene.drain()
    assert len(scene.live.flows) == 0
    assert len(scene.ended) == 3000


def test_the_copy_that_is_written_up_stays_as_it_is_while_requests_come(scene: Scene) -> None:
    uid, _ = scene.enter(Identity("w", slo_s=60.0))
    copied = scene.door.still()
    more, _ = scene.enter(Identity("v", slo_s=60.0))
    assert list(copied.flows) == ["w"]
    assert copied.counted[0] == uid
    scene.finish(uid)
    scene.finish(more)
    scene.door.close_idle(0.0)
