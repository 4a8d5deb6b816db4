"""Searches give the rows that fit, in order, with how many fit in all; facts count what is there."""

from storage import commands, facts, finders, runs
from storage.finders import Changes, Workflows
from storage.journal import Batch, Journal
from storage.open import Store
from tests.storage.test_readers import NOW, finished


def test_an_empty_store_gives_empty_answers(store: Store) -> None:
    assert finders.ended(store, Workflows(), 9) == ([], 0)
    assert finders.commands(store, Changes(), 9) == ([], 0)
    assert finders.own_events(store, Changes(), 9) == ([], 0)
    assert finders.caused(store, []) == {}
    assert finders.workflow_values(store) == {"tenant": [], "kind": []}
    assert finders.change_values(store) == {"kind": [], "author": []}
    assert {row.rows for row in facts.kept(store)} == {0}
    assert facts.size_bytes(store) > 0


def test_ended_workflows_are_found_by_what_they_are_and_come_by_debt(store: Store, journal: Journal) -> None:
    rows = [
        finished(1, debt_s=2.0),
        finished(2, debt_s=7.0, tenant="b"),
        finished(31, debt_s=None, state="refused"),
        finished(310, kind="agent", debt_s=9.0),
        finished(311),
    ]
    journal.commit(Batch(NOW, 0.0, workflows=rows))

    def found(wanted: Workflows, limit: int = 9) -> tuple[list[int], int]:
        rows, count = finders.ended(store, wanted, limit)
        assert all("timeline" not in row for row in rows)
        return [row["id"] for row in rows], count

    assert found(Workflows()) == ([310, 2, 1, 311, 31], 5)
    assert found(Workflows(), 2) == ([310, 2], 5)
    assert found(Workflows(late=True)) == ([310, 2, 1], 3)
    assert found(Workflows(tenant="b")) == ([2], 1)
    assert found(Workflows(kind="agent", state="completed")) == ([310], 1)
    assert found(Workflows(number="31")) == ([31, 310, 311], 3)
    assert found(Workflows(number="31", late=True)) == ([310], 1)
    assert found(Workflows(number="9")) == ([], 0)
    assert finders.workflow_values(store) == {"tenant": ["a", "b"], "kind": ["agent", "chat"]}


def test_commands_and_events_are_found_by_kind_author_and_state(store: Store, journal: Journal) -> None:
    numbers = [commands.submit(store, "pause", {}, author) for author in ("cli", "dashboard 10.0.0.7", "cli")]
    commands.submit(store, "resume", {}, "cli")
    told = {"kind": "pause", "text": "paused", "command_id": numbers[0], "old": False, "new": True}
    own = [{"at": NOW + k, "kind": kind, "text": kind} for k, kind in enumerate(("engine_started", "alpha"))]
    journal.commit(Batch(NOW, 0.0, events=[told, *own], outcomes=[{"id": numbers[0], "state": "applied"}]))

    rows, count = finders.commands(store, Changes(), 2)
    assert [row["id"] for row in rows] == [4, 3]
    assert count == 4
    assert [row["id"] for row in finders.commands(store, Changes("pause", "cli", "pending"), 9)[0]] == [3]
    rows, count = finders.own_events(store, Changes(), 1)
    assert [row["kind"] for row in rows] == ["alpha"]
    assert count == 2
    assert finders.own_events(store, Changes("engine_started"), 9)[1] == 1
    assert finders.caused(store, numbers).keys() == {numbers[0]}
    assert finders.change_values(store) == {
        "kind": ["alpha", "engine_started", "pause", "resume"],
        "author": ["cli", "dashboard 10.0.0.7"],
    }


def test_the_newest_start_of_an_engine_is_known_however_much_happened_since(store: Store, journal: Journal) -> None:
    commands.submit(store, "pause", {}, "cli")
    events = [{"at": NOW, "kind": "engine_started", "text": "first"}]
    events += [{"at": NOW + 1, "kind": "engine_started", "text": "second"}]
    events += [{"at": NOW + 2 + k, "kind": "server_lost", "text": f"{k}"} for k in range(5)]
    journal.commit(Batch(NOW, 0.0, events=events))
    rows, found = finders.judged(store, 3)
    assert [row["kind"] for row in rows] == ["pause"]
    assert [event["text"] for event in found] == ["4", "3", "2", "second"]
    assert [event["text"] for event in finders.judged(store, 9)[1]].count("second") == 1


def test_every_kind_of_row_is_counted_with_its_limits(store: Store, journal: Journal) -> None:
    commands.submit(store, "pause", {}, "cli")
    runs.save(store, "tune", {}, {})
    samples = [{"scope": "fleet"}, {"scope": "fleet", "resolution_s": 10}]
    journal.commit(Batch(NOW, 0.0, snapshot={}, samples=samples, workflows=[finished(1)]))
    found = {row.what: row for row in facts.kept(store)}
    ones = ("samples of 1 s", "samples of 10 s", "workflows", "snapshots", "commands", "runs")
    assert [found[what].rows for what in ones] == [1] * len(ones)
    assert (found["samples of 1 s"].age_s, found["snapshots"].newest) == (1800.0, 900)
    assert (found["decisions"].age_s, found["decisions"].newest) == (86_400.0, 200_000)
    assert (found["runs"].age_s, found["runs"].newest) == (None, None)
