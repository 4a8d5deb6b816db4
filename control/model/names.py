"""What others call a GPU or a model, found in the catalogue: "NVIDIA H100 80GB HBM3", "meta-llama/Llama-3.1-8B"."""

from collections.abc import Iterable

from control.model.catalogue import catalogue


def find_gpu(name: str, memory_gib: float | None = None) -> str | None:
    """The catalogue's key of the GPU that `name` speaks of, None where it knows none.

    A GPU that exists with several memories, such as the H100 with 80 and 64 GB, is told by `memory_gib` per GPU.
    """
    found = _closest(name, catalogue().gpus)
    if found is None or memory_gib is None:
        return found
    kin = [key for key in catalogue().gpus if key.split("-")[0] == found.split("-")[0]]
    return min(kin, key=lambda key: (abs(catalogue().gpus[key].memory_gib - memory_gib), key != found))


def find_model(name: str) -> str | None:
    """The catalogue's key of the model that `name` speaks of, None where it knows none."""
    return _closest(name.rstrip("/").rsplit("/", 1)[-1], catalogue().models)


def _closest(name: str, keys: Iterable[str]) -> str | None:
    """The key that is `name`, else the longest that stands in it; case and punctuation do not count."""
    wanted = _plain(name)
    inside = [key for key in keys if _plain(key) in wanted]
    return max(inside, key=lambda key: len(_plain(key)), default=None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
