"""The form that asks for a fork: what differs, how far ahead, how often, from when."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from control.present import caps, whatif, whatif_ask
from control.present.wording import asked, outcome
from pages._ui import edits, forks, frame, tables

Snapshot = dict[str, Any]
Settings = list[whatif_ask.Setting]


@st.fragment
def form(snapshot: Snapshot, view: forks.View) -> None:
    """Preset, its settings, horizon, seeds, arrivals, and the button that forks."""
    names = whatif_ask.PRESETS
    with st.container(key="whatif-preset"):
        preset = st.segmented_control(
            "What differs", list(names), default="alpha", required=True, format_func=names.__getitem__,
            key="whatif_preset", label_visibility="collapsed",
        )  # fmt: skip
    settings = _CHOICES[preset](snapshot)
    st.html(tables.note(whatif_ask.too_many(settings) or whatif_ask.PRESET_NOTES[preset]))
    spec = _horizon(snapshot, settings)
    begun = view.run is not None and whatif.computing(view.run)
    ready = bool(settings) and not whatif_ask.too_many(settings) and (begun or not view.busy)
    ends = "Ends the fork that is under way" if begun else None
    if st.button("Fork now", key="fork", type="primary", width="stretch", disabled=not ready, help=ends):
        forks.ask(spec)  # no callback: it would be given what the form said before the number that was typed last
        st.rerun()


@st.fragment(run_every=1)
def state() -> None:
    """What became of the newest of these commands."""
    newest = forks.newest_command()
    kind, text = "none", "Nothing asked for yet"
    if newest is not None:
        kind, text = newest["state"], f"{outcome(newest)} ({asked(newest)})"
    if problem := edits.problem():
        kind, text = "conflict", problem
    with st.container(key="whatif-state"):
        st.html(tables.state(text, kind))


def _horizon(snapshot: Snapshot, settings: Settings) -> whatif_ask.Spec:
    """How far ahead, how often, from what and from when."""
    left, right = st.columns(2, gap="small")
    minutes = left.number_input("Minutes ahead", *whatif_ask.MINUTES, value=whatif_ask.DEFAULT_MINUTES, key="ahead")
    arrivals = "resampled"
    back = st.slider("Fork from, simulated min ago", *whatif_ask.BACK_MINUTES, value=0, key="back", format="%d min")
    if all(row.get("simulated") is not False for row in snapshot["instances"]):
        arrivals = st.segmented_control(
            "Arrivals", list(whatif_ask.ARRIVALS), default="resampled", required=True, key="arrivals",
            format_func=whatif_ask.ARRIVALS.__getitem__,
        )  # fmt: skip
        st.html(tables.note(whatif_ask.ARRIVAL_NOTES[arrivals]))
    low, high = whatif_ask.SEEDS
    seeds = right.number_input(
        "Seeds", low, high, value=whatif_ask.DEFAULT_SEEDS, key="seeds", disabled=arrivals == "own"
    )
    return whatif_ask.spec(settings, minutes, seeds, arrivals, back)


def _alphas(_: Snapshot) -> Settings:
    return whatif_ask.alphas()


def _policies(snapshot: Snapshot) -> Settings:
    names = [name for name in snapshot["policies"] if name != snapshot["policy"]]
    return whatif_ask.policies(st.multiselect("Policies", names, default=names[:3], key="whatif_policies"))


def _fleet(snapshot: Snapshot) -> Settings:
    deeds = st.pills(
        "Do", list(whatif_ask.DEEDS), selection_mode="multi", default=["fail"], key="whatif_deeds",
        format_func=whatif_ask.DEEDS.__getitem__,
    )  # fmt: skip
    names = [i["name"] for i in snapshot["instances"]]
    instances = st.multiselect("Instances", names, default=names[:1], key="whatif_instances")
    role = "both"
    if "role" in deeds:
        role = st.selectbox("To", whatif_ask.ROLES, key="whatif_role") or role
    return whatif_ask.changes(deeds, instances, role)


def _power(_: Snapshot) -> Settings:
    detail = frame.detail()
    rows = detail["power"]["rows"] if detail else []
    if not rows:
        st.html(frame.waiting("its power"))
        return []
    tiers = list(dict.fromkeys([*(row["gpu"] for row in rows), *(row["instance"] for row in rows)]))
    tier = st.selectbox("GPU or instance", tiers, key="whatif_tier")
    limits = caps.bounds([row for row in rows if tier in (row["gpu"], row["instance"])])
    if limits is None:
        st.html(tables.note("No cap can be set on it: choose another.", "empty"))
        return []
    low_w, high_w = st.slider(
        "W per GPU", limits.low_w, limits.high_w, value=(limits.low_w, limits.high_w), step=1.0, key=f"whatif-w-{tier}",
        format="%.0f W",
    )  # fmt: skip
    levels = st.slider("Levels", 3, 5, value=4, key="whatif_levels")
    return whatif_ask.caps(str(tier), low_w, high_w, levels, limits.high_w)


def _loads(_: Snapshot) -> Settings:
    return whatif_ask.loads(_factors("Arrivals", whatif_ask.LOADS, "whatif_loads"))


def _slo(_: Snapshot) -> Settings:
    return whatif_ask.slo_scales(_factors("Deadlines", whatif_ask.SLO_SCALES, "whatif_slo"))


def _factors(label: str, values: tuple[float, ...], key: str) -> list[float]:
    """Factors picked of `values`; 1 is how it is and stands beside them anyhow."""
    return st.pills(
        label, values, selection_mode="multi", default=[v for v in values if v != 1.0], key=key,
        format_func=lambda v: f"×{v:g}",
    )  # fmt: skip


def _retention(snapshot: Snapshot) -> Settings:
    limits = st.pills(
        "Keep an idle context", range(len(whatif_ask.IDLE_S)), selection_mode="multi", default=[0, 2, 4, 6],
        format_func=lambda k: _limit(whatif_ask.IDLE_S[k]), key="whatif_idle",
    )  # fmt: skip
    need = (snapshot.get("retention") or {}).get("need", "observed")
    return whatif_ask.retentions([whatif_ask.IDLE_S[k] for k in sorted(limits)], need)


def _limit(limit_s: float | None) -> str:
    return "for good" if limit_s is None else f"{limit_s:g} s"


_CHOICES: dict[str, Callable[[Snapshot], Settings]] = {
    "alpha": _alphas,
    "policies": _policies,
    "fleet": _fleet,
    "power": _power,
    "load": _loads,
    "slo": _slo,
    "retention": _retention,
}
