"""What can be made to go wrong, at start or while the server runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from control.errors import SettingError


@dataclass(frozen=True)
class Faults:
    """All faults of a server; the defaults are health. `after` counts tokens of a stream."""

    latency_ms: float = 0.0  # ms before a request is looked at
    error_rate: float = 0.0  # share of requests that are answered with error_status
    error_status: int = 500
    full: bool = False  # 503 with vLLM's words for a full queue
    hang: bool = False  # requests are taken and never answered
    stall_after: int | None = None  # the stream stops, the connection stays open
    cut_after: int | None = None  # the connection is reset in the middle of the stream
    error_after: int | None = None  # an error comes as a data event in the middle of the stream
    crash: bool = False  # the server is gone at once
    unhealthy: bool = False  # /health answers 503
    stale_metrics: bool = False  # /metrics and the load header repeat what they last said
    no_metrics: bool = False  # /metrics is not there
    slow_stream: float = 1.0  # factor on all times of the engine
    malformed_sse: bool = False  # an event in the middle of the stream is broken JSON
    keep_alive: bool = False  # a comment line before every chunk
    clock_skew_s: float = 0.0  # s that the server's timestamps are ahead

    def __post_init__(self) -> None:
        """Refuse values without a meaning."""
        between("error_rate", self.error_rate, 0.0, 1.0)
        between("error_status", self.error_status, 400, 599)
        between("latency_ms", self.latency_ms, 0.0, 3_600_000.0)
        between("slow_stream", self.slow_stream, 0.001, 1000.0)
        for name in ("stall_after", "cut_after", "error_after"):
            if getattr(self, name) is not None:
                between(name, getattr(self, name), 0, 1_000_000_000)

    @property
    def touch_streams(self) -> bool:
        """Whether any fault changes what a stream sends."""
        after = (self.stall_after, self.cut_after, self.error_after)
        return self.malformed_sse or self.keep_alive or any(value is not None for value in after)


KINDS = {field.name: getattr(field.type, "__name__", str(field.type)) for field in fields(Faults)}


def between(name: str, value: float, low: float, high: float) -> None:
    """SettingError unless `value` lies in [low, high]."""
    if not low <= value <= high:
        raise SettingError(f"fault {name} = {value:g}: expected a number from {low:g} to {high:g}")


def changed(faults: Faults, values: Mapping[str, Any]) -> Faults:
    """`faults` with the given ones set; null resets one.

    Raises:
        SettingError: an unknown fault or a value of the wrong kind.
    """
    return replace(faults, **{name: checked(name, value) for name, value in values.items()})


def checked(name: str, value: Any) -> Any:
    """The value of a fault, its default for None."""
    if name not in KINDS:
        raise SettingError(f"fault {name!r}: expected one of {', '.join(KINDS)}")
    kind = KINDS[name]
    if value is None:
        return getattr(Faults, name)
    if kind == "bool":
        fits = isinstance(value, bool)
    else:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        fits = fits and ("float" in kind or float(value).is_integer())
    if not fits:
        wanted = "true or false" if kind == "bool" else "a number" if "float" in kind else "a whole number"
        raise SettingError(f"fault {name} = {value!r}: expected {wanted}")
    return int(value) if kind.startswith("int") else value


def parse(texts: Iterable[str]) -> Faults:
    """Faults written as name=value, the way the command line takes them.

    Raises:
        SettingError: see `changed`.
    """
    values = {}
    for text in texts:
        name, _, value = text.partition("=")
        values[name] = plain(name, value)
    return changed(Faults(), values)


def plain(name: str, text: str) -> Any:
    """The value that a text stands for: no value and true are true."""
    if KINDS.get(name) == "bool":
        return {"": True, "true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text
