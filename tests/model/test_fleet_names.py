"""What an instance may be called: its name is a key of samples and is drawn in charts."""

import pytest

from control.errors import FleetError
from control.model.fleet import parse_fleet


def text(name: str) -> str:
    return f"[[instance]]\ngpu = 'H100'\nmodel = 'Llama-3.1-8B'\nname = {name!r}\n"


@pytest.mark.parametrize("name", ["fleet", "", " a ", "<b>x</b>", "a b", "\u202ex", "x" * 41])
def test_a_name_that_would_be_misread_is_refused(name):
    with pytest.raises(FleetError, match="letters, digits"):
        parse_fleet(text(name), "f.toml")


def test_plain_names_are_taken():
    assert parse_fleet(text("rack-1.gpu_0"), "f.toml").instances[0].name == "rack-1.gpu_0"
