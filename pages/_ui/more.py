"""Long lists: how many rows are shown, with a button for more, and an on-off filter; both in the URL."""

import streamlit as st

from pages._ui.filters import ALL

FIELD = "rows"


def rows(page: int, most: int) -> int:
    """How many rows the URL asks for, from `page` to `most`."""
    asked = st.query_params.get(FIELD, "")
    return min(max(int(asked), page), most) if asked.isascii() and asked.isdecimal() and len(asked) < 9 else page


def button(shown: int, total: int, page: int, most: int) -> None:
    """A button that shows `page` rows more, or the reason why there are no more to be had."""
    if shown >= total:
        return
    if shown >= most:
        st.html(f'<p class="note">No more than {most} rows are listed; narrow the filters to see the others.</p>')
    elif st.button(f"Show {min(page, total - shown, most - shown)} more", key="more", type="tertiary"):
        st.query_params[FIELD] = str(min(rows(page, most) + page, most))
        st.rerun()


def switch(field: str, label: str) -> bool:
    """A toggle that is "1" in the URL while it is on."""
    key = f"{field}_only"
    on = st.toggle(label, value=st.query_params.get(field) == "1", key=key, on_change=_keep, args=(field, key))
    return bool(on)


def closed(choice: str) -> str | None:
    """A filter's choice for a search: None where it is open."""
    return None if choice == ALL else choice


def _keep(field: str, key: str) -> None:
    if st.session_state[key]:
        st.query_params[field] = "1"
    else:
        st.query_params.pop(field, None)
