"""Wording of commands: what was asked, what came of it, and what undoes it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from control.present.caps import cap_words
from control.present.marks import value_of
from control.present.units import counted, number, quantity
from control.present.whatif_ask import ahead, what

#: Kinds whose effect reaches requests in flight: asked about once.
CONFIRMED = frozenset({"drain", "kill"})

#: What undoes a command. A revival has no undo: it would kill, unasked.
_INVERSE = {"drain": "undrain", "undrain": "drain", "kill": "revive", "pause": "resume"}
_INVERSE["resume"] = "pause"
_VALUED = frozenset({"alpha", "policy", "speed", "load_scale"})
_TARGETED = frozenset({"drain", "undrain", "kill", "revive"})
_NAMES = {"alpha": "α", "load_scale": "load", "speed": "speed", "policy": "policy"}
_PLAIN = {"tune": "run tuning", "release_alpha": "release α to the tuner", "end_guard": "stop watching"}
_FORK_KEYS = {"whatif": "spec", "shadows": "policies", "undo_whatif": "run"}
_FORKS = frozenset({"apply_whatif", *_FORK_KEYS})
#: Policies that dispatch by HexGen-Flow's score, which has two forms.
SCORED = frozenset({"hexgen", "wb-fcfs"})
#: Kinds whose value is the whole payload.
_WHOLE = frozenset({"power_cap", "slow", "scenario"})
_SIGNS = {"pending": "…", "applied": "✓", "refused": "✕"}
#: What to call it where a command that was obeyed has changed nothing of the fleet.
_DONE = {"whatif": "forked", "regret": "begun", "tune": "begun"}


class Order(NamedTuple):
    """What to submit: kind, payload and the old value it expects (None: any)."""

    kind: str
    payload: dict[str, Any]
    expected: Any = None


def order(kind: str, value: Any = None, old: Any = None) -> Order:
    """The order of a control; `value`: number, policy, instance, s to step or settings; `old`: what it replaces.

    A power cap's value is {"tier", "cap_w"} (W per GPU), that of power caps the caps by instance, that of slowness
    {"instance", "factor"}, of a scenario {"scenario", "seed"}, of a fork its spec, of applying one {"run", "setting",
    "guard_minutes"}, of shadows the policies.
    """
    if kind in _TARGETED:
        return Order(kind, {"instance": value})
    if kind in _VALUED:
        return Order(kind, {kind: value}, old)
    if kind == "tuning_mode":
        return Order(kind, {"mode": value})
    if kind in _WHOLE:
        return Order(kind, value, old)
    if kind == "power_caps":
        return Order(kind, {"caps": value})
    if kind == "retention":
        return Order(kind, {"retention": value}, old)
    if kind == "cancel":
        return Order(kind, {"workflow": value})
    if kind in _FORKS:
        return Order(kind, value if kind == "apply_whatif" else {_FORK_KEYS[kind]: value})
    if kind == "regret":
        return Order(kind, {"decision": value})
    return Order(kind, {"step_s": value} if kind == "step" else {})


def given(made: Order) -> Any:
    """The value that `order` makes this order of."""
    return made.payload if made.kind in _WHOLE else next(iter(made.payload.values()), None)


def asked(row: Mapping[str, Any]) -> str:
    """What a command row asked for, e.g. "α 0.2 → 0.35" or "drain h100-0"."""
    kind, payload = str(row["kind"]), row.get("payload") or {}
    if kind in _TARGETED:
        return f"{kind} {payload.get('instance', '')}"
    if kind == "step":
        return f"step {quantity(value_of(payload), 's')}"  # type: ignore[arg-type]
    if kind == "tuning_mode":
        return f"tuning {payload.get('mode', '')}"
    if kind in ("power_cap", "power_caps", "retention", "cancel", "slow", "scenario", "regret"):
        return _settings(kind, payload)
    if kind in _FORKS:
        return _fork(row, payload)
    if kind not in _VALUED:
        return _PLAIN.get(kind, kind)
    old, new = value_of(row.get("expected")), value_of(payload)
    before = f"{_value(kind, old)} → " if old is not None else ""
    return f"{_NAMES[kind]} {before}{_value(kind, new)}"


def outcome(row: Mapping[str, Any]) -> str:
    """State of a command row with a sign and the engine's reason: why it was refused, or done only in part."""
    state = str(row["state"])
    word = _DONE.get(str(row.get("kind")), state) if state == "applied" else state
    reason = f": {row['reason']}" if row.get("reason") else ""
    return f"{_SIGNS[state]} {word}{reason}"


def inverse(row: Mapping[str, Any], replaced: object = None) -> Order | None:
    """The order that undoes an applied command; None for a step or where the old value is unknown.

    `replaced` is the old value the engine recorded; without it the one the author expected counts.
    """
    kind, payload = str(row["kind"]), row.get("payload") or {}
    if row["state"] != "applied":
        return None
    if kind in _INVERSE:
        return order(_INVERSE[kind], payload.get("instance"))
    old = value_of(row.get("expected")) if replaced is None else value_of(replaced)
    if kind in ("power_cap", "power_caps"):
        return order("power_caps", value_of(replaced)) if replaced is not None else None
    if kind == "retention":
        return order(kind, value_of(replaced), payload) if replaced is not None else None
    if kind == "apply_whatif":
        return order("undo_whatif", payload.get("run"))
    if kind == "slow":
        return order(kind, value_of(replaced), payload.get("factor")) if replaced is not None else None
    if (kind in _VALUED or kind == "tuning_mode") and old is not None:
        return order(kind, old, value_of(payload))
    return None


def effect(kind: str, instance: str, running: int, queued: int, forecast: Mapping[str, Any] | None = None) -> str:
    """What pressing the button will do to the calls on `instance`; by the engine's `forecast`, what it would cost."""
    said = _deed(kind, instance, running, queued)
    cost = _cost(kind, forecast) if forecast else ""
    return f"{said} {cost}".rstrip()


def _deed(kind: str, instance: str, running: int, queued: int) -> str:
    if kind == "drain":
        return (
            f"Drain {instance}: {_calls(running)} running and {queued} queued there are finished; "
            "it takes no new ones until it is undrained."
        )
    if kind == "kill":
        return (
            f"Kill {instance}: {_calls(running)} running there lose their progress and KV cache, and with "
            f"{queued} queued are placed again elsewhere. It stays down until it is revived."
        )
    if kind == "undrain":
        return f"Undrain {instance}: it takes new calls again."
    return f"Revive {instance}: it comes back with an empty KV cache."


def starting(scenario: str, seed: int, active: int) -> str:
    """What starting a scenario will do, in one sentence."""
    ended = "1 active workflow" if active == 1 else f"{active} active workflows"
    return (
        f"{scenario} begins at 0 s with seed {seed}, on its own fleet and under its own policy. What runs now ends: "
        f"{ended} with it, and what the tuner has learnt is dropped. This cannot be undone."
    )


def _cost(kind: str, forecast: Mapping[str, Any]) -> str:
    """What a kill or a drain would cost now, in one sentence; "" for what costs nothing."""
    if kind == "drain":
        wait_s, talks = forecast.get("drain_s"), _count(forecast, "conversations", "conversation")
        held = f"Conversations kept there end first: {talks}." if forecast.get("conversations") else ""
        wait = "How long that takes is not known." if wait_s is None else f"That takes about {quantity(wait_s, 's')}."
        return f"{held} {wait}".lstrip()
    if kind != "kill":
        return ""
    lost = [_count(forecast, "conversations", "conversation"), f"{number(forecast.get('kv_tokens'))} tokens of KV"]
    again = number(forecast.get("recompute_tokens"))
    risk = _count(forecast, "deadlines_at_risk", "deadline")
    return f"Now it would lose {' and '.join(lost)}, compute {again} tokens again, and put {risk} at risk."


def giving_up(workflow: int) -> str:
    """What giving up a workflow will do, in one sentence."""
    return (
        f"Workflow #{workflow} ends as cancelled: calls that wait end at once, those that run at the next boundary of "
        "their batch, and the KV it holds is freed. This cannot be undone."
    )


def retention_words(settings: Mapping[str, Any]) -> str:
    """How long and how much KV is kept for conversations, in words."""
    limit_s = settings.get("idle_ttl_s")
    kept = "idle ones kept for good" if limit_s is None else f"idle ones kept {quantity(limit_s, 's')}"
    return f"{settings.get('need', 'observed')} need, {kept}"


def alpha_note(policy: str) -> str:
    """What alpha means, or that the policy has none."""
    if policy in SCORED:
        return "0 = balance the load · 1 = fastest GPU"
    return f"{policy} has no α"


def policy_name(policy: str, form: str) -> str:
    """A policy as it is shown: with the form of its score ("paper" or "artifact") where it is not the paper's."""
    return policy if form == "paper" or policy not in SCORED else f"{policy}, {form} form"


def meanwhile(applied: Any, base: Any, draft: Any) -> str:
    """The warning shown when the applied value moved away from the one an edit started from, or ""."""
    if applied in (base, draft) or draft == base:
        return ""
    return f"Someone else changed it meanwhile: {_plain(base)} → {_plain(applied)}. Discard to take it over."


def _settings(kind: str, payload: Mapping[str, Any]) -> str:
    """A power cap, a retention, a speed, a scenario, a workflow to give up or a placement to replay, in words."""
    if kind == "regret":
        return f"replay placement {payload.get('decision', '')}"
    if kind == "slow":
        return f"{payload.get('instance', '')} ×{payload.get('factor', 1.0):g} as long"
    if kind == "scenario":
        return f"scenario {payload.get('scenario', '')}, seed {payload.get('seed', 0)}"
    if kind == "cancel":
        return f"cancel workflow #{payload.get('workflow', '')}"
    if kind == "retention":
        return f"retention: {retention_words(payload.get('retention') or {})}"
    if kind == "power_cap":
        return f"cap {payload.get('tier', '')} {cap_words(payload.get('cap_w'))}"
    caps = payload["caps"]
    cap = cap_words(next(iter(caps.values()))) if len(set(caps.values())) == 1 else "as before"
    whose = next(iter(caps)) if len(caps) == 1 else f"{len(caps)} instances"
    return f"cap {whose} {cap}"


def _fork(row: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    """A fork, applying a setting of one (by its name, once the engine told it), or shadow policies, in words."""
    kind = row["kind"]
    if kind == "whatif":
        spec = payload.get("spec") or {}
        return f"what if: {what(spec)}, {ahead(spec)}"
    if kind == "shadows":
        return f"shadow {', '.join(payload.get('policies') or ()) or 'nothing'}"
    if kind == "undo_whatif":
        return f"take back what was applied of fork #{payload.get('run')}"
    minutes = payload.get("guard_minutes") or 0
    guard = f", guarded {minutes:g} min" if minutes else ", no guard"
    name = row.get("reason") if row.get("state") == "applied" else None
    setting = name or f"setting {payload.get('setting')}"
    return f"apply {setting} of fork #{payload.get('run')}{guard}"


def _count(forecast: Mapping[str, Any], key: str, noun: str) -> str:
    return counted(forecast.get(key) or 0, noun)


def _value(kind: str, value: object) -> str:
    if isinstance(value, int | float):
        return f"×{value:g}" if kind in {"speed", "load_scale"} else f"{value:.2f}"
    return str(value)


def _plain(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else str(value)


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"
