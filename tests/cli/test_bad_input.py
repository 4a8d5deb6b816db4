"""Bad input: exit code 2, one line on stderr that says what is wrong and what is accepted, nothing else."""

import os
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Headway

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n"
FLEET = '[[instance]]\ngpu = "H100"\nmodel = "Llama-3.1-8B"\n'
FILES: dict[str, bytes] = {
    "empty.csv": b"",
    "binary.csv": b"\x00\x01\x02\xff" * 100,
    "latin.csv": AZURE.encode() + b"caf\xe9,1,2\n",
    "header.csv": b"a,b,c\n1,2,3\n",
    "number.csv": AZURE.encode() + b"2023-11-16 18:15:47.00,abc,5\n",
    "cut.jsonl": b'{"id": 1, "calls": [\n',
    "key.toml": FLEET.encode() + b"colour = 1\n",
    "gpu.toml": FLEET.replace("H100", "H10").encode(),
    "syntax.toml": b"[[instance]\n",
    "none.toml": b'name = "none"\n',
    "there.jsonl": b"kept\n",
}
SIM = ("sim", "--json", "--trace")
GENERATED = (*SIM, "text2sql", "--workflows", 5)
TUNE = ("tune", "--json", "--trace", "text2sql", "--workflows", 5)
COMPARE = ("compare", "--json", "--trace", "text2sql", "--workflows", 5)
WRITE = ("trace", "generate", "text2sql", "--n", 5)
NO_RATE = "expected a finite number > 0"
PORT = "expected a number from 1 to 65535"

CASES: list[tuple[tuple[object, ...], str]] = [
    (("nope",), "No such command 'nope'"),
    (("sim", "--nope"), "No such option '--nope'"),
    (("sim", "--json"), "--trace is missing: expected a file or one of text2sql"),
    ((*SIM, "missing.csv"), "missing.csv: no such file or directory"),
    ((*SIM, "folder"), "folder: is a directory"),
    ((*SIM, "empty.csv"), "empty.csv: the file is empty"),
    ((*SIM, "binary.csv"), "binary.csv:1: binary data"),
    ((*SIM, "latin.csv"), "latin.csv:3"),
    ((*SIM, "header.csv"), "header.csv:1: header 'a,b,c' is of no known format"),
    ((*SIM, "number.csv"), "number.csv:3: ContextTokens = 'abc': expected a whole number >= 1"),
    ((*SIM, "cut.jsonl"), "cut.jsonl:1"),
    ((*SIM, "number.csv", "--format", "nope"), "format = 'nope': expected one of azure"),
    ((*SIM, "number.csv", "--format", "hexgen"), "number.csv:1"),
    *(((*GENERATED, "--alpha", odd), "expected a number from 0") for odd in ("nan", "2", "-0.1", "inf")),
    ((*GENERATED, "--alpha", "x"), "'x' is not a valid float"),
    *(((*TUNE, "--window", odd), "window = ") for odd in ("nan", "0", "-5")),
    ((*TUNE, "--policy", "rr-fcfs"), "its dispatch uses no alpha: expected one of hexgen"),
    *((("rehearse", "--alpha", odd), "--alpha = ") for odd in ("nan", "2")),
    (("rehearse", "--minutes", 0), "--minutes = 0"),
    (("rehearse", "--form", "x"), "form = 'x'"),
    (("reproduce", "report", "--out", "/dev/full"), "expected a file in a folder that exists"),
    *(((*GENERATED, "--rate", odd), NO_RATE) for odd in ("0", "-1", "inf", "nan")),
    *(((*GENERATED, "--slo-scale", odd), NO_RATE) for odd in ("0", "-1", "inf", "nan")),
    *(((*GENERATED, "--arrivals", "gamma", "--cv", odd), NO_RATE) for odd in ("0", "-1", "inf", "nan")),
    ((*GENERATED, "--arrivals", "nope"), "process = 'nope': expected one of poisson, gamma, recorded"),
    ((*GENERATED, "--policy", "nope"), "policy = 'nope': expected one of hexgen"),
    ((*GENERATED, "--form", "nope"), "form = 'nope': expected one of paper, artifact"),
    *(((*GENERATED, "--aging", odd), "expected a number of seconds > 0") for odd in ("0", "-1", "nan")),
    ((*GENERATED, "--aging", "x"), "'x' is not a valid float"),
    ((*GENERATED, "--seed", "-1"), "seed = -1: expected a whole number >= 0"),
    ((*GENERATED, "--seed", "1.5"), "'1.5' is not a valid integer"),
    ((*GENERATED, "--fleet", "nope"), "fleet 'nope' is neither a file nor built in"),
    ((*GENERATED, "--fleet", "demo-mixd"), "did you mean demo-mixed?"),
    ((*GENERATED, "--fleet", "missing.toml"), "missing.toml: cannot be read: No such file"),
    ((*GENERATED, "--fleet", "key.toml"), "key.toml: instance 1: unknown key 'colour'"),
    ((*GENERATED, "--fleet", "gpu.toml"), "'H10'"),
    ((*GENERATED, "--fleet", "syntax.toml"), "syntax.toml: not valid TOML"),
    ((*GENERATED, "--fleet", "none.toml"), "the fleet is empty"),
    *(
        ((*SIM, "text2sql", "--workflows", n), "expected a number from 1 to 1e+06")
        for n in ("0", "-5", "9" * 15, "9" * 25)
    ),
    ((*SIM, "agents", "--workflows", "9" * 15), "expected a number from 1 to 1e+06"),
    ((*COMPARE, "--seeds", 0), "--seeds = 0: expected a whole number >= 1"),
    ((*COMPARE, "--policies", ","), "--policies is empty"),
    ((*COMPARE, "--policies", "hexgen,nope"), "policy = 'nope'"),
    ((*COMPARE, "--alpha", "nan"), "expected a number from 0"),
    ((*COMPARE, "--form", "nope"), "form = 'nope': expected one of paper, artifact"),
    ((*COMPARE, "--aging", "0"), "aging_s = 0.0: expected a number of seconds > 0"),
    (("trace", "describe", "missing.csv", "--json"), "missing.csv: no such file"),
    (("trace", "describe", "folder"), "folder: is a directory"),
    (("trace", "describe"), "Missing argument 'PATH'"),
    (("trace", "import", "header.csv", "--out", "new.jsonl"), "header.csv:1"),
    (("trace", "import", "number.csv"), "Missing option '--out'"),
    (("trace", "generate", "nope", "--out", "new.jsonl"), "workload = 'nope': expected one of text2sql"),
    ((*WRITE, "--out", "no/such/new.jsonl"), "no/such/new.jsonl: cannot be written: No such file or directory"),
    ((*WRITE, "--out", "there.jsonl"), "there.jsonl: the file exists; pass --force to replace it"),
    ((*WRITE, "--out", "folder", "--force"), "folder: cannot be written: Is a directory"),
    ((*WRITE, "--rate", "nan", "--out", "new.jsonl"), NO_RATE),
    (("trace", "generate", "text2sql", "--n", 0, "--out", "new.jsonl"), "--n = 0"),
    (("trace", "generate", "agents", "--n", "9" * 18, "--out", "new.jsonl"), "--n"),
    *(
        (("bench", "twin", "--json", f"--{name}", n), f"--{name} = ")
        for name in ("instances", "requests", "runs")
        for n in (0, -1, 10**12)
    ),
    *((("dashboard", "--port", port), PORT) for port in (0, 70000, -1)),
    (("up", "--headless", "--port", 70000), PORT),
    (("up", "--headless", "--host", "no.such.host.invalid"), "expected an address of this machine"),
    (("up", "--headless", "--demo", "nope"), "scenario = 'nope': expected one of demo-mixed"),
    (("up", "--headless", "--policy", "nope"), "policy = 'nope'"),
    (("up", "--headless", "--alpha", "nan"), "alpha = nan: expected a number from 0 to 1"),
    *((("up", "--headless", "--speed", odd), "expected a number from 0.1 to 60") for odd in ("0", "61", "nan", "-1")),
    (("up", "--headless", "--seed", "-1"), "seed = -1"),
    (("engine", "--rate", "2"), "--rate = 2 needs --trace"),
    (("engine", "--demo", "nope"), "scenario = 'nope': expected one of demo-mixed"),
    (("engine", "--fleet", "nope"), "fleet 'nope' is neither a file nor built in"),
    (("engine", "--fleet", "key.toml"), "key.toml: instance 1: unknown key 'colour'"),
    (("engine", "--policy", "nope"), "policy = 'nope'"),
    *((("engine", "--alpha", odd), "alpha = ") for odd in ("7", "-1", "nan")),
    *((("engine", "--speed", odd), "speed = ") for odd in ("0", "61", "nan")),
    (("engine", "--trace", "missing.csv"), "missing.csv: no such file"),
    (("engine", "--trace", "number.csv", "--rate", "nan"), "number.csv:3"),
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of files nobody can use."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(("arguments", "says"), CASES, ids=[" ".join(map(str, case[0]))[:60] for case in CASES])
def test_one_line_and_nothing_written(headway: Headway, files: Path, arguments: tuple[object, ...], says: str) -> None:
    code, out, err = headway(*arguments)
    lines = err.splitlines()
    assert (code, out) == (2, "")
    assert len(lines) == 1
    assert says in lines[0]
    assert sorted(entry.name for entry in files.iterdir()) == sorted([*FILES, "folder"])
    assert (files / "there.jsonl").read_bytes() == b"kept\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_file_that_may_not_be_read(headway: Headway, files: Path) -> None:
    (files / "number.csv").chmod(0)
    code, out, err = headway(*SIM, "number.csv")
    assert (code, out) == (2, "")
    assert "number.csv: permission denied" in err.lower()


@pytest.mark.parametrize("command", [("up", "--headless"), ("dashboard",)])
def test_port_that_is_taken(headway: Headway, command: tuple[str, ...]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = headway(*command, "--port", port)
    assert (code, out) == (2, "")
    assert err == f"--port = {port}: the port is taken on 127.0.0.1; name another one\n"


def test_help_without_a_command_and_with(headway: Headway) -> None:
    assert headway()[0] == 2
    for arguments in (["--help"], ["sim", "-h"], ["trace", "generate", "--help"], ["--version"]):
        code, out, err = headway(*arguments)
        assert (code, err) == (0, "")
        assert out
