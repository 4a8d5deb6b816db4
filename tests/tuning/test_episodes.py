"""Records of the past replayed while some of it is not known yet."""

import numpy as np

from control.model.workload import CALL
from control.tuning.episodes import Arrival, Episode, Names, as_it_came, resample

NAMES = Names(("known", "new"), ("t",), ("s",), 0)
ENDED = Episode(1.0, 10.0, 0, 0, 0, np.zeros(2, CALL))
ARRIVALS = [ENDED, Arrival(2.0, 10.0, 0, 1, 0), Arrival(3.0, 10.0, 0, 0, 0)]


def test_a_kind_of_which_nothing_has_ended_is_left_out_of_what_is_replayed() -> None:
    replayed = as_it_came(ARRIVALS, [ENDED], NAMES, 0)
    assert replayed.workflows["arrival_s"].tolist() == [1.0, 3.0]
    assert set(resample(ARRIVALS, [ENDED], NAMES, 0.0, 0).workflows["kind"].tolist()) == {0}


def test_a_record_of_nothing_but_unknown_kinds_gives_no_work() -> None:
    assert len(resample(ARRIVALS[1:2], [], NAMES, 0.0, 0).workflows) == 0
    assert len(as_it_came(ARRIVALS[1:2], [], NAMES, 0).workflows) == 0
