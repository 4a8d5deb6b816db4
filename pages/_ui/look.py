"""What the page sees of store and engine at one moment, and what it shows while there is nothing live."""

from dataclasses import dataclass
from html import escape
from typing import Any

import streamlit as st

from control.errors import StoreError
from control.present.faces import Face, broken, face_of
from pages._ui.source import store
from storage import lease, readers


@dataclass(frozen=True)
class Look:
    """The newest snapshot's payload (None without one) and the face that fits."""

    face: Face
    snapshot: dict[str, Any] | None = None


def look() -> Look:
    """Read the store once; an unreadable one gives the face "broken"."""
    try:
        newest = readers.latest_snapshot(store())
        holder = lease.holder(store())
    except StoreError as error:
        return Look(broken(str(error)))
    payload: dict[str, Any] | None = newest["payload"] if newest else None
    return Look(face_of(payload, holder), payload)


def show_face(face: Face) -> None:
    """A sentence and an action instead of charts; the page comes alive by itself once there is news."""
    action = f"<code>{escape(face.action)}</code>" if face.action else ""
    with st.container(key=f"face-{face.kind}"):
        st.html(
            f'<section class="face face-{face.kind}" role="status"><h1>{escape(face.title)}</h1>'
            f"<p>{escape(face.text)}</p>{action}</section>"
        )
    _wait_for_another(face)


@st.fragment(run_every=2)
def _wait_for_another(shown: Face) -> None:
    if look().face != shown:
        st.rerun()
