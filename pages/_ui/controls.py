"""The control panel: every control writes a command row and nothing else."""

from typing import Any

import streamlit as st

from control.present.wording import CONFIRMED, SCORED, alpha_note, effect, policy_name
from pages._ui import edits, frame, tables
from pages._ui.look import look

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
LOADS = tuple(round(0.25 * k, 2) for k in range(13))
STEP_S = 10.0


@st.fragment
def scheduler(snapshot: dict[str, Any]) -> None:
    """α and the policy, edited as a draft and applied together."""
    alpha = edits.base("alpha", snapshot["alpha"])
    policy = edits.base("policy", snapshot["policy"])
    asked = edits.draft("policy")
    with st.container(key="alpha"):
        st.slider(
            "α", 0.0, 1.0, value=float(alpha), step=0.01, key=edits.key("alpha"),
            label_visibility="collapsed", disabled=asked not in SCORED,
        )  # fmt: skip
        st.html(tables.note(alpha_note(asked)))
    names, form = _with(snapshot["policies"], policy), snapshot.get("form", "paper")
    with st.container(key="policy"):
        st.selectbox(
            "Policy", names, index=names.index(policy), key=edits.key("policy"), label_visibility="collapsed",
            format_func=lambda name: policy_name(name, form),
        )  # fmt: skip
    untouched = edits.draft("alpha") == alpha and edits.draft("policy") == policy
    with st.container(horizontal=True, gap="small"):
        if st.button("Apply", key="apply", type="primary", disabled=untouched, shortcut="Ctrl+Enter"):
            edits.submit_draft("alpha")
            edits.submit_draft("policy")
            st.rerun()
        st.button("Discard", key="discard", disabled=untouched, on_click=_discard)


@st.fragment
def run(snapshot: dict[str, Any]) -> None:
    """Pause, step, speed and load: they take effect at once."""
    paused = bool(snapshot["paused"])
    with st.container(horizontal=True, gap="small", key="run-buttons"):
        toggle = "resume" if paused else "pause"
        if st.button(toggle.capitalize(), key=toggle, type="primary" if paused else "secondary"):
            _ask(toggle)
        if st.button(f"Step {STEP_S:g} s", key="step", disabled=not paused):
            _ask("step", STEP_S)
    left, right = st.columns(2, gap="small")
    with left.container(key="speed"):
        _choice("Speed", "speed", SPEEDS, snapshot["speed"])
    with right.container(key="load"):
        _choice("Load", "load_scale", LOADS, snapshot["load_scale"])


@st.fragment
def instances(snapshot: dict[str, Any]) -> None:
    """Drain, kill and bring back one instance; what reaches running calls is confirmed once."""
    rows = {i["name"]: i for i in snapshot["instances"]}
    with st.container(key="instance"):
        name = st.selectbox("Instance", list(rows), key="instance_name", label_visibility="collapsed")
    state = rows[name]["state"]
    real = rows[name].get("simulated") is False
    offered = {"up": ("drain", "kill"), "draining": ("undrain", "kill")}.get(state, ("revive",))
    kinds = [kind for kind in offered if not real or kind not in ("kill", "revive")]
    if real and not kinds:
        st.html(tables.note("A real server comes back by itself once it answers."))
    with st.container(horizontal=True, gap="small", key="instance-buttons"):
        for kind in kinds:
            if st.button(kind.capitalize(), key=kind):
                _ask(kind, name)


def _ask(kind: str, value: str | float | None = None) -> None:
    if kind in CONFIRMED:
        edits.ask(f"{kind.capitalize()} {value}?", _confirm, kind, str(value))
        return
    edits.submit(kind, value)
    st.rerun()


def _confirm(question: int, kind: str, name: str) -> None:
    now = look().snapshot or {"instances": []}
    row = next((i for i in now["instances"] if i["name"] == name), {"running": 0, "queued": 0})
    detail = frame.detail() or {}
    st.write(effect(kind, name, row["running"], row["queued"], (detail.get("forecasts") or {}).get(name)))
    with st.container(horizontal=True, gap="small"):
        verb, asked = f"{kind.capitalize()} {name}", (question, kind, name)
        if st.button(verb, key="confirm", type="primary", on_click=edits.submit_once, args=asked):
            st.rerun()
        if st.button("Keep it", key="cancel"):
            st.rerun()


def _choice(label: str, field: str, values: tuple[float, ...], applied: float) -> None:
    value = edits.base(field, applied)
    options = sorted(_with(values, value))
    st.selectbox(
        label, options, index=options.index(value), key=edits.key(field),
        format_func=lambda v: f"×{v:g}", on_change=edits.submit_draft, args=(field,),
    )  # fmt: skip


def _with(values: Any, value: Any) -> list[Any]:
    listed = list(values)
    return listed if value in listed else [*listed, value]


def _discard() -> None:
    now = look().snapshot
    for field in ("alpha", "policy"):
        edits.reset(field, now[field] if now else st.session_state[f"{field}_base"])
