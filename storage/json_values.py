"""What may be kept as JSON: what the store cannot hold, or would give back as something else, is refused."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from control.errors import SettingError, shown

MOST_DEEP = 20  # levels
LEAST_WHOLE, MOST_WHOLE = -(2**63), 2**63 - 1


def check_json(what: str, value: Any, most: int) -> None:
    """Refuse a value that is no JSON of at most `most` parts; `what` names it.

    Raises:
        SettingError: a number is not finite or too large, text is no Unicode, a part is of another type, or it is
            nested too deeply.
    """
    waiting, seen = [(value, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        seen += 1
        if depth > MOST_DEEP:
            raise SettingError(f"{what}: nested too deeply; accepted: at most {MOST_DEEP} levels")
        if seen + len(waiting) > most:
            raise SettingError(f"{what}: too long; accepted: at most {most:,} values")
        waiting += [(inner, depth + 1) for inner in parts_of(what, part)]


def parts_of(what: str, value: Any) -> Iterable[Any]:
    """What an object or a list holds; nothing for what is a value itself, which is checked."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise SettingError(f"{what}: {shown(key)} is no key; accepted: text")
            check_text(what, key)
        return value.values()
    if isinstance(value, list | tuple):
        return value
    check_leaf(what, value)
    return ()


def check_leaf(what: str, value: Any) -> None:
    """Refuse what is no text, number, truth value or null. A NumPy scalar counts as what it holds."""
    held = value.item() if hasattr(value, "item") and getattr(value, "size", 0) == 1 else value
    if isinstance(held, str):
        check_text(what, held)
    elif isinstance(held, float):
        if not isfinite(held):
            raise SettingError(f"{what}: {held!r} is no number; accepted: finite numbers")
    elif isinstance(held, int):
        if not LEAST_WHOLE <= held <= MOST_WHOLE:
            raise SettingError(f"{what}: {shown(held)} is too large; accepted: whole numbers of at most 64 bits")
    elif held is not None:
        raise SettingError(f"{what}: {shown(held)} is no JSON; accepted: text, numbers, lists and objects")


def check_text(what: str, value: str) -> None:
    """Refuse text that is no Unicode, such as half a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise SettingError(f"{what}: {shown(value)} is no text that can be stored; accepted: Unicode") from error
