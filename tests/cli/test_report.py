"""`headway reproduce report`: what it refuses before it starts, and the command it writes down."""

import pytest

from control.cli.report import command_line
from tests.cli.conftest import Headway


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seeds", "0"], "--seeds = 0"),
        (["--seeds", "x"], "--seeds"),
        (["--out", "no/such/folder/r.md"], "--out = 'no/such/folder/r.md'"),
        (["--out", "."], "--out = '.'"),
        (["--trace", "no.csv"], "no.csv"),
        (["--profile", "no.csv"], "no.csv"),
        (["--conversations", "no.csv"], "no.csv"),
        (["--coding", "no.csv"], "no.csv"),
        (["--parts", "other"], "--parts = 'other'"),
        (["--parts", "conserve", "--out", "absent.md"], "--out = 'absent.md'"),
    ],
)
def test_bad_options_are_one_line_and_two(options: list[str], said: str, headway: Headway) -> None:
    code, out, err = headway("reproduce", "report", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_the_command_written_down_has_no_folders_of_this_machine() -> None:
    line = command_line({"--trace": "/data/t.csv", "--profile": "/data/p.csv", "--coding": None}, 5, "docs/r.md")
    assert line == "headway reproduce report --trace t.csv --profile p.csv --seeds 5 --out docs/r.md"
    assert command_line({}, 2, "/home/me/r.md") == "headway reproduce report --seeds 2 --out r.md"
