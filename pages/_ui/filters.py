"""Filters of a page, kept in the URL; a choice stays while what it names comes and goes.

`page` keeps apart the values of pages that mean different things by one name, such as the state of a conversation
and of a workflow.
"""

from collections.abc import Callable, Sequence

import streamlit as st

ALL = "all"
Choices = Callable[[str], Sequence[str]]


def known(field: str, fresh: Sequence[str], page: str = "") -> list[str]:
    """All values of a filter that this session has seen, those of `fresh` included."""
    seen: list[str] = st.session_state.setdefault(f"known_{page}{field}", [ALL])
    asked = st.query_params.get(field, ALL)
    values = [*seen, *(v for v in dict.fromkeys([*fresh, asked]) if v not in seen)]
    st.session_state[f"known_{page}{field}"] = values
    return values


def chosen(fields: Sequence[str], choices: Choices, page: str = "") -> list[str]:
    """One select box a field, side by side; what is chosen in each."""
    with row():
        return boxes(fields, choices, page)


def boxes(fields: Sequence[str], choices: Choices, page: str = "") -> list[str]:
    """The select boxes alone, for a row that holds more."""
    found = []
    for field in fields:
        options = known(field, choices(field), page)
        found.append(st.selectbox(field.capitalize(), options, key=field, bind="query-params", width=190) or ALL)
    return found


def row() -> st.delta_generator.DeltaGenerator:
    """The row that filters stand in."""
    return st.container(key="filters", horizontal=True, gap="small")


def is_new(fields: Sequence[str], choices: Choices, page: str = "") -> bool:
    """Whether a value has come up that the boxes do not offer yet."""
    return any(len(known(field, (), page)) != len(known(field, choices(field), page)) for field in fields)
