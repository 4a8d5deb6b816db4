"""What a person asks reaches the engine once, in order, checked at the door."""

from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from control.errors import SettingError
from storage import commands
from storage.journal import Batch, Journal
from storage.open import Store, open_store

GOOD = [
    ("alpha", {"alpha": 0}),
    ("alpha", {"alpha": 1.0}),
    ("policy", {"policy": "hexgen"}),
    ("pause", {}),
    ("resume", {}),
    ("speed", {"speed": 0.1}),
    ("speed", {"speed": 60}),
    ("step", {"step_s": 1.5}),
    ("load_scale", {"load_scale": 3}),
    ("power_cap", {"tier": "decode", "cap_w": 200.0}),
    ("power_cap", {"tier": "a40-0", "cap_w": None}),
    ("power_caps", {"caps": {"a40-0": 200.0, "a40-1": None}}),
    ("retention", {"retention": {"need": "observed", "idle_ttl_s": 60.0}}),
    ("retention", {"retention": {"need": "oracle", "idle_ttl_s": None}}),
    ("cancel", {"workflow": 12}),
    ("slow", {"instance": "h100-0", "factor": 4.0}),
    ("scenario", {"scenario": "burst", "seed": 0}),
    *((kind, {"instance": "h100-0"}) for kind in ("drain", "undrain", "kill", "revive")),
]


@pytest.mark.parametrize(("kind", "payload"), GOOD)
def test_every_kind_within_its_bounds_is_taken(store: Store, kind: str, payload: dict[str, Any]) -> None:
    number = commands.submit(store, kind, payload, "dashboard")
    row = commands.get(store, number)
    assert row is not None
    assert (row["kind"], row["payload"], row["author"], row["state"]) == (
        kind,
        payload,
        "dashboard",
        "pending",
    )
    assert row["expected"] is None
    assert row["reason"] is None


DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]
ROUND: list[Any] = []
ROUND.append(ROUND)

BAD: list[tuple[Any, Any, str]] = [
    ("alpha", {"alpha": 1.01}, "command alpha, alpha: 1.01 is out of bounds; accepted: a number 0 to 1"),
    ("alpha", {"alpha": float("nan")}, "nan is out of bounds"),
    ("alpha", {"alpha": True}, "True is out of bounds"),
    ("alpha", {"alpha": "0.5"}, "'0.5' is out of bounds"),
    ("alpha", {}, r'payload {} does not fit; accepted: {"alpha": ...}'),
    ("alpha", {"alpha": 0.5, "beta": 1}, "does not fit"),
    ("alpha", None, "payload None does not fit"),
    ("speed", {"speed": 0.05}, "accepted: a number 0.1 to 60"),
    ("speed", {"speed": float("inf")}, "out of bounds"),
    ("step", {"step_s": 0}, "accepted: a number above 0, to 3600"),
    ("load_scale", {"load_scale": -0.1}, "accepted: a number 0 to 3"),
    ("policy", {"policy": " "}, "is not a name"),
    ("kill", {"instance": 3}, "3 is not a name"),
    ("kill", {"instance": "x" * 201}, "accepted: text of 1 to 200 characters"),
    ("pause", {"now": True}, "does not fit; accepted: {}"),
    ("power_cap", {"tier": "decode"}, r'accepted: {"tier": ..., "cap_w": ...}'),
    ("power_cap", {"tier": "decode", "cap_w": -1}, "accepted: a number 0 to 10000"),
    ("power_cap", {"tier": "", "cap_w": None}, "is not a name"),
    ("power_caps", {"caps": {}}, "accepted: W per GPU by instance"),
    ("power_caps", {"caps": {"a40-0": "x"}}, "command power_caps, caps of a40-0: 'x' is out of bounds"),
    ("retention", {"retention": {"need": "observed"}}, "does not fit"),
    ("retention", {"retention": {"need": "observed", "idle_ttl_s": 0}}, "accepted: a number above 0"),
    ("cancel", {"workflow": -3}, "-3 is no number of a workflow"),
    ("cancel", {"workflow": True}, "True is no number of a workflow"),
    ("slow", {"instance": "h100-0", "factor": 0}, "accepted: a number 0.25 to 20"),
    ("scenario", {"scenario": "burst"}, "does not fit"),
    ("scenario", {"scenario": "burst", "seed": -1}, "-1 is no seed; accepted: a whole number >= 0"),
    ("whatif", {"spec": {"minutes": float("nan")}}, "spec: nan is no number; accepted: finite numbers"),
    ("whatif", {"spec": {"settings": [{"load": float("-inf")}]}}, "spec: -inf is no number"),
    ("whatif", {"spec": {"minutes": 10**400}}, "too large; accepted: whole numbers of at most 64 bits"),
    ("whatif", {"spec": {"minutes": 10**5000}}, "int too large to show is too large"),
    ("whatif", {"spec": {"settings": DEEP}}, "spec: nested too deeply; accepted: at most 20 levels"),
    ("whatif", {"spec": {"settings": ROUND}}, "spec: nested too deeply"),
    ("whatif", {"spec": {"settings": [{"name": "\ud800"}]}}, "is no text that can be stored"),
    ("whatif", {"spec": {"settings": [{1: 2}]}}, "1 is no key; accepted: text"),
    ("whatif", {"spec": {"settings": [{"a", "b"}]}}, "is no JSON"),
    ("whatif", {"spec": {"settings": ["x" * 60_000]}}, "spec: longer than 50,000 characters of JSON"),
    ("whatif", {"spec": {"settings": [0] * 60_000}}, "spec: too long; accepted: at most 50,000 values"),
    ("alpha", {"alpha": 10**400}, "out of bounds; accepted: a number 0 to 1"),
    ("alpha", {"alpha": DEEP}, "list too large to show is out of bounds"),
    ("alpha", DEEP, "payload list too large to show does not fit"),
    ("policy", {"policy": "\ud800"}, "is no text that can be stored"),
    (["alpha"], {"alpha": 0.5}, "unknown kind ['alpha']"),
    ("reboot", {}, "unknown kind 'reboot'; accepted: alpha, policy, pause"),
]


@pytest.mark.parametrize(("kind", "payload", "message"), BAD)
def test_a_bad_command_is_refused_with_what_is_accepted(store: Store, kind: Any, payload: Any, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        commands.submit(store, kind, payload, "cli")
    assert message in str(caught.value)
    assert commands.recent(store, 10) == []


def test_a_command_without_an_author_is_refused(store: Store) -> None:
    with pytest.raises(SettingError, match="author"):
        commands.submit(store, "pause", {}, "")


@pytest.mark.parametrize(
    "expected", [float("nan"), 10**400, {"alpha": float("inf")}, DEEP], ids=["nan", "huge", "inf", "deep"]
)
def test_an_expected_value_that_cannot_be_kept_is_refused_not_dropped(store: Store, expected: Any) -> None:
    with pytest.raises(SettingError, match=r"^expected: "):
        commands.submit(store, "alpha", {"alpha": 0.5}, "cli", expected=expected)
    with pytest.raises(SettingError, match=r"^undo_of: "):
        commands.submit(store, "pause", {}, "cli", undo_of=10**400)
    assert commands.recent(store, 10) == []


def test_an_undo_names_a_command_that_exists(store: Store) -> None:
    first = commands.submit(store, "drain", {"instance": "l4-0"}, "dashboard")
    undo = commands.submit(store, "undrain", {"instance": "l4-0"}, "dashboard", undo_of=first)
    row = commands.get(store, undo)
    assert row is not None
    assert row["undo_of"] == first
    with pytest.raises(SettingError, match="there is no command 999"):
        commands.submit(store, "resume", {}, "cli", undo_of=999)


def test_the_expected_old_value_travels_with_the_command(store: Store) -> None:
    for expected in (0.5, "hexgen", False, {"speed": 2}, np.float64(0.25)):
        number = commands.submit(store, "alpha", {"alpha": np.float64(0.75)}, "cli", expected=expected)
        row = commands.get(store, number)
        assert row is not None
        assert row["expected"] == expected
        assert row["payload"] == {"alpha": 0.75}


def test_commands_wait_in_order_and_list_newest_first(store: Store, journal: Journal) -> None:
    numbers = [commands.submit(store, "pause", {}, "cli") for _ in range(4)]
    journal.commit(Batch(0.0, 0.0, outcomes=[{"id": numbers[1], "state": "applied"}]))
    assert [row["id"] for row in commands.pending(store)] == [numbers[0], *numbers[2:]]
    assert [row["id"] for row in commands.recent(store, 3)] == numbers[:0:-1]
    assert commands.get(store, 999) is None


def test_the_engine_notices_a_command_from_another_process_and_only_then(url: str, store: Store) -> None:
    dashboard = open_store(url)
    before = commands.changed(store)
    assert commands.changed(store) == before
    commands.submit(dashboard, "pause", {}, "dashboard")
    after = commands.changed(store)
    assert after != before
    assert commands.changed(store) == after
    dashboard.close()


def test_a_payload_that_is_no_json_stops_nobody(store: Store) -> None:
    """A foreign hand may write anything: the engine is shown the text, and refuses it."""
    number = commands.submit(store, "pause", {}, "cli")
    with store.writing() as connection:
        connection.execute(sa.text("UPDATE command SET payload = '{\"tier\": NaN}' WHERE id = :id"), {"id": number})
    assert [row["payload"] for row in commands.pending(store)] == ['{"tier": NaN}']
