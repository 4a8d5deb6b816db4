"""The walls of the house: what may import what, how long a file and a function may be."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("control", "storage", "pages")
LONGEST_FILE = 300
LONGEST_FUNCTION = 40
#: Tables of columns, written once and never changed, are no code to be read.
GENERATED = ("storage/migrations/versions",)


def sources(*rooms: str) -> Iterator[tuple[str, str]]:
    """Name and text of every source file of the rooms."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(GENERATED):
                yield name, path.read_text("utf-8")


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a source text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring: what a caller reads is not what must fit a screen."""
    first = function.body[0]
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def imported(text: str) -> set[str]:
    """Top-level names of all modules that a source text imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def test_contracts_of_the_import_linter_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    code = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert code == 0, capsys.readouterr().out


@pytest.mark.parametrize("room", ROOMS)
def test_no_file_is_longer_than_can_be_read(room: str) -> None:
    long = {name: text.count("\n") for name, text in sources(room) if text.count("\n") > LONGEST_FILE}
    assert long == {}


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_is_longer_than_a_screen(room: str) -> None:
    lengths = {f"{name}:{node.name}": length(node) for name, text in sources(room) for node in functions(text)}
    assert {where: lines for where, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_numba_comes_in_through_one_door() -> None:
    doors = [name for name, text in sources(*ROOMS) if "numba" in imported(text)]
    assert doors == ["control/jit.py"]


@pytest.mark.parametrize("module", ["random", "time", "threading", "logging", "sqlite3", "streamlit"])
def test_deciding_rooms_neither_draw_nor_wait_nor_write(module: str) -> None:
    rooms = ("control/model", "control/policy", "control/metrics", "control/present", "control/twin")
    assert [name for name, text in sources(*rooms) if module in imported(text)] == []


def test_policies_are_pure_tables_in_numbers_out() -> None:
    """Nothing in the policy room imports the twin, and every function of it is compiled or only names things."""
    for name, text in sources("control/policy"):
        assert "control.twin" not in text, name
        for node in functions(text):
            decorated = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
            names_things = name in ("control/policy/codes.py", "control/policy/rules.py")
            assert names_things or decorated in (["compiled"], ["compiled_apart"], ["compiled_with_memory"]), (
                f"{name}: {node.name}"
            )
