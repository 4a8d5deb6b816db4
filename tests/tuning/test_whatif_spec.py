"""What may be asked of a fork, and what is said where it may not."""

from typing import Any

import pytest

from control.errors import SettingError
from control.tuning.whatif.spec import AS_IT_IS, read_spec


def test_what_is_left_out_has_a_default_and_the_fleet_as_it_is_comes_first() -> None:
    spec = read_spec({"settings": [{"name": "α 0.3", "alpha": 0.3}]})
    assert (spec.minutes, spec.seeds, spec.arrivals, spec.back_s) == (5.0, 8, "resampled", 0.0)
    assert [setting.name for setting in spec.settings] == [AS_IT_IS, "α 0.3"]
    assert read_spec(spec.as_dict()) == spec  # what is written down is read again


def test_the_workloads_own_future_needs_no_second_seed() -> None:
    assert read_spec({"seeds": 20, "arrivals": "own", "settings": [{"name": AS_IT_IS}]}).seeds == 1


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ([], "spec = []"),
        ({"settings": []}, "1 to 41 settings"),
        ({"settings": [{"name": "x"}], "weeks": 1}, "'weeks' is not known: expected minutes"),
        ({"settings": [{"name": "x"}], "minutes": 0}, "minutes = 0: expected a number from 1 to 30"),
        ({"settings": [{"name": "x"}], "seeds": 2.5}, "seeds = 2.5: expected a whole number from 1 to 32"),
        ({"settings": [{"name": "x"}], "seeds": True}, "seeds = True"),
        ({"settings": [{"name": "x"}], "arrivals": "known"}, "expected one of resampled, own"),
        ({"settings": [{"alpha": 0.2}]}, "name = None"),
        ({"settings": [{"name": "x", "alpha": 1.5}]}, "alpha = 1.5: expected a number from 0 to 1"),
        ({"settings": [{"name": "x", "policy": "best"}]}, "policy = 'best': expected one of hexgen"),
        ({"settings": [{"name": "x", "load": "two"}]}, "load = 'two'"),
        ({"settings": [{"name": "x", "retention": {"need": "all", "idle_ttl_s": 1}}]}, "expected one of observed"),
        ({"settings": [{"name": "x", "changes": [{"do": "sell", "instance": "a"}]}]}, "expected {'do': one of add"),
        ({"settings": [{"name": "x", "changes": [{"do": "fail"}]}]}, "instance = None"),
        ({"settings": [{"name": "x", "changes": [{"do": "add", "like": "a", "count": 0}]}]}, "count = 0"),
        ({"settings": [{"name": "x", "changes": [{"do": "role", "instance": "a", "role": "king"}]}]}, "mixed, prefill"),
        ({"settings": [{"name": "x", "changes": [{"do": "cap", "tier": "H100", "cap_w": -1}]}]}, "cap_w = -1"),
        ({"settings": [{"name": "x", "policy": ["zz"]}]}, "policy = ['zz']: expected one of hexgen"),
        ({"settings": [{"name": "x", "policy": {}}]}, "policy = {}: expected one of hexgen"),
        ({"settings": [{"name": "x", "changes": [{"do": []}]}]}, "{'do': []}: expected {'do': one of add"),
        (
            {"settings": [{"name": "x", "changes": [{"do": "role", "instance": "a", "role": ["both"]}]}]},
            "role = ['both']",
        ),
        (
            {"settings": [{"name": "x", "retention": {"need": {}, "idle_ttl_s": 1}}]},
            "need = {}: expected one of observed",
        ),
        ({"settings": [{"name": "x"}], "arrivals": [["own"]]}, "arrivals = [['own']]: expected one of resampled, own"),
        ({"settings": [{"name": "x", "alpha": float("nan")}]}, "alpha = nan: expected a number from 0 to 1"),
        ({"settings": [{"name": "x", "load": float("inf")}]}, "load = inf: expected a number from 0 to 10"),
        ({"settings": [{"name": "x"}], "minutes": 10**5000}, "minutes = int too large to show"),
        ({"settings": [{"name": "x"}, {"name": "x", "alpha": 0.2}]}, "settings[1]: name = 'x': it repeats"),
        ({"settings": [{"name": "x"}, {"name": " x "}]}, "settings[1]: name = 'x': it repeats"),
        ({"settings": [{"name": AS_IT_IS, "alpha": 0.2}]}, "that is the first one, which changes nothing"),
        ({"settings": [{"name": "x"}, {"name": AS_IT_IS}]}, "that is the first one, which changes nothing"),
        ({"settings": [{"name": "a\nb"}]}, "name = 'a\\nb': expected 1 to 80 characters, none of them a control"),
        ({"settings": [{"name": "\u202e0.3 α"}]}, "none of them a control character"),
        ({"settings": [{"name": f"{k}"} for k in range(41)]}, "settings: 41 beside 'as it is': expected at most 40"),
    ],
)
def test_bad_specs_are_refused_with_what_is_accepted(raw: Any, told: str) -> None:
    with pytest.raises(SettingError) as error:
        read_spec(raw)
    assert told in str(error.value)


def test_what_is_nested_beyond_measure_is_refused_in_one_line() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(SettingError) as error:
        read_spec({"settings": [{"name": deep}]})
    assert "name = list too large to show" in str(error.value)
