"""Wording of commands: what was asked, what came of it, and what undoes it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from control.present.caps import cap_words
from control.present.marks import value_of
from control.present.units import quantity

#: Kinds whose effect reaches requests in flight: asked about once.
CONFIRMED = frozenset({"drain", "kill"})

#: What undoes a command. A revival has no undo: it would kill, unasked.
_INVERSE = {"drain": "undrain", "undrain": "drain", "kill": "revive", "pause": "resume"}
_INVERSE["resume"] = "pause"
_VALUED = frozenset({"alpha", "policy", "speed", "load_scale"})
_TARGETED = frozenset({"drain", "undrain", "kill", "revive"})
_NAMES = {"alpha": "α", "load_scale": "load", "speed": "speed", "policy": "policy"}
_PLAIN = {"tune": "run tuning", "release_alpha": "release α to the tuner"}
#: Policies that dispatch by HexGen-Flow's score, which has two forms.
SCORED = frozenset({"hexgen", "wb-fcfs"})
_SIGNS = {"pending": "…", "applied": "✓", "refused": "✕"}


class Order(NamedTuple):
    """What to submit: kind, payload and the old value it expects (None: any)."""

    kind: str
    payload: dict[str, Any]
    expected: Any = None


def order(kind: str, value: Any = None, old: Any = None) -> Order:
    """The order of a control; `value`: number, policy, instance, s to step or settings; `old`: what it replaces.

    A power cap's value is {"tier", "cap_w"} (W per GPU), that of power caps the caps by instance.
    """
    if kind in _TARGETED:
        return Order(kind, {"instance": value})
    if kind in _VALUED:
        return Order(kind, {kind: value}, old)
    if kind == "tuning_mode":
        return Order(kind, {"mode": value})
    if kind == "power_cap":
        return Order(kind, value, old)
    if kind == "power_caps":
        return Order(kind, {"caps": value})
    if kind == "retention":
        return Order(kind, {"retention": value}, old)
    if kind == "cancel":
        return Order(kind, {"workflow": value})
    if kind == "regret":
        return Order(kind, {"decision": value})
    return Order(kind, {"step_s": value} if kind == "step" else {})


def asked(row: Mapping[str, Any]) -> str:
    """What a command row asked for, e.g. "α 0.2 → 0.35" or "drain h100-0"."""
    kind, payload = str(row["kind"]), row.get("payload") or {}
    if kind in _TARGETED:
        return f"{kind} {payload.get('instance', '')}"
    if kind == "step":
        return f"step {quantity(value_of(payload), 's')}"  # type: ignore[arg-type]
    if kind == "tuning_mode":
        return f"tuning {payload.get('mode', '')}"
    if kind in ("power_cap", "power_caps", "retention", "cancel", "regret"):
        return _settings(kind, payload)
    if kind not in _VALUED:
        return _PLAIN.get(kind, kind)
    old, new = value_of(row.get("expected")), value_of(payload)
    before = f"{_value(kind, old)} → " if old is not None else ""
    return f"{_NAMES[kind]} {before}{_value(kind, new)}"


def outcome(row: Mapping[str, Any]) -> str:
    """State of a command row with a sign and, where refused, the engine's reason."""
    state = str(row["state"])
    reason = f": {row['reason']}" if state == "refused" and row.get("reason") else ""
    return f"{_SIGNS[state]} {state}{reason}"


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
    if (kind in _VALUED or kind == "tuning_mode") and old is not None:
        return order(kind, old, value_of(payload))
    return None


def effect(kind: str, instance: str, running: int, queued: int) -> str:
    """What pressing the button will do to the calls on `instance`, in one sentence."""
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
    return f"{policy} has no α; {' and '.join(sorted(SCORED))} have."


def policy_name(policy: str, form: str) -> str:
    """A policy as it is shown: with the form of its score ("paper" or "artifact") where it is not the paper's."""
    return policy if form == "paper" or policy not in SCORED else f"{policy}, {form} form"


def meanwhile(applied: Any, base: Any, draft: Any) -> str:
    """The warning shown when the applied value moved away from the one an edit started from, or ""."""
    if applied in (base, draft) or draft == base:
        return ""
    return f"Someone else changed it meanwhile: {_plain(base)} → {_plain(applied)}. Discard to take it over."


def _settings(kind: str, payload: Mapping[str, Any]) -> str:
    """A power cap, a retention, a workflow to give up or a placement to replay, in words."""
    if kind == "regret":
        return f"replay placement {payload.get('decision', '')}"
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


def _value(kind: str, value: object) -> str:
    if isinstance(value, int | float):
        return f"×{value:g}" if kind in {"speed", "load_scale"} else f"{value:.2f}"
    return str(value)


def _plain(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else str(value)


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"
