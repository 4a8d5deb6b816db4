"""Times of conversations beside their standalone runs: which turn counts, which wait does not, what is a violation."""

import numpy as np
import pytest

from control.metrics.conversations import (
    Times,
    conversation_figures,
    conversation_times,
    meets_slo,
    over_standalone,
    without_admission,
)
from control.metrics.energy import conversation_energies, phase_energies_j, workflow_energies_j
from control.policy.codes import ACTIVE, COMPLETED, DONE
from control.policy.tables import CALL_STATE, INSTANCE, WORKFLOW_STATE, Table


def tables() -> tuple[Table, Table]:
    """A conversation of three turns that arrived at 10 s and waited 2 s for the prefiller and 3 s for a decoder."""
    workflows, calls = np.zeros(1, WORKFLOW_STATE), np.zeros(3, CALL_STATE)
    workflows["arrival_s"], workflows["finished_s"], workflows["state"], workflows["n_calls"] = 10.0, 40.0, DONE, 3
    calls["group"], calls["state"], calls["emitted"] = [0, 1, 2], COMPLETED, [1, 5, 11]
    calls["ready_s"], calls["started_s"] = [10.0, 22.0, 27.0], [12.0, 22.0, 27.0]
    calls["first_token_s"], calls["finished_s"] = [14.0, 23.0, 30.0], [21.0, 27.0, 40.0]
    calls["hold_s"] = [3.0, 0.0, 0.0]
    return workflows, calls


def test_ttfet_is_the_first_token_of_the_last_turn_since_arrival() -> None:
    times = conversation_times(*tables())
    assert (times.ttfet_s[0], times.e2e_s[0], times.tbt_s[0], times.ttft_s[0]) == (20.0, 30.0, 1.0, 4.0)


def test_a_declared_turn_is_the_first_effective_one() -> None:
    assert conversation_times(*tables(), visible={1, 2}).ttfet_s[0] == 13.0
    assert np.isnan(conversation_times(*tables(), visible={7}).ttfet_s[0])


def test_the_papers_clock_runs_neither_in_the_queue_nor_while_no_decoder_has_room() -> None:
    served = without_admission(conversation_times(*tables()))
    assert (served.ttfet_s[0], served.e2e_s[0], served.tbt_s[0]) == (15.0, 25.0, 1.0)
    assert served.ttft_s[0] == 2.0, "the first token comes before the wait for a decoder"
    assert without_admission(served) == served, "taken off once"


def test_what_did_not_end_has_no_times_and_is_a_violation() -> None:
    workflows, calls = tables()
    alone = conversation_times(workflows, calls)
    workflows["state"] = ACTIVE
    times = conversation_times(workflows, calls)
    assert np.isnan(times.ttfet_s[0])
    assert conversation_figures(times, alone)["violations"] == {"ttfet": 100.0, "tbt": 100.0, "e2e": 100.0}
    assert conversation_figures(times, alone)["ttfet_p95"] is None


def one(ttfet: float, tbt: float, e2e: float) -> Times:
    """Times of one conversation, s."""
    return Times(*(np.array([v]) for v in (ttfet, e2e, tbt, 1.0, 0.0, 0.0)))


@pytest.mark.parametrize(
    ("times", "met"),
    [((5.0, 5.0, 5.0), True), ((5.1, 1, 1), False), ((1, 5.1, 1), False), ((1, 1, 5.1), False)],
)
def test_an_slo_is_kept_up_to_five_times_standalone_in_all_three(times: tuple[float, ...], met: bool) -> None:
    alone = one(1.0, 1.0, 1.0)
    assert bool(meets_slo(one(*times), alone)[0]) is met
    assert over_standalone(one(*times), alone).ttfet_s[0] == times[0]


def test_an_answer_of_one_token_has_no_gap_to_violate() -> None:
    alone = one(1.0, np.nan, 1.0)
    assert meets_slo(one(1.0, np.nan, 1.0), alone)[0]
    assert conversation_figures(one(1.0, np.nan, 1.0), alone)["violations"]["tbt"] == 0.0


def test_joules_are_told_by_phase_by_conversation_and_by_slo_met() -> None:
    workflows, calls = tables()
    calls["energy_j"], calls["input_tokens"] = [10.0, 20.0, 30.0], 100
    instances = np.zeros(2, INSTANCE)
    instances["energy_j"], instances["idle_j"] = [60.0, 40.0], [10.0, 30.0]
    instances["idle_after_j"], instances["prefill_j"] = [0.0, 20.0], [25.0, 5.0]
    found = conversation_energies(workflows, calls, instances, np.array([True]))
    assert phase_energies_j(instances).items() <= found.items()
    assert (found["prefill_j"], found["decode_j"], found["idle_j"], found["energy_j"]) == (30.0, 30.0, 40.0, 100.0)
    assert workflow_energies_j(workflows, calls)[0] == found["workflow_j_mean"] == 60.0
    assert (found["joules_per_conversation"], found["joules_per_slo_met"]) == (100.0, 100.0)
    assert found["tokens_per_joule_idle_billed"] == pytest.approx(317 / 100.0)
    assert found["tokens_per_joule"] == pytest.approx(317 / 80.0)
    assert conversation_energies(workflows, calls, instances, np.array([False]))["joules_per_slo_met"] is None
