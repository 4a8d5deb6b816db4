"""Filters of a page, kept in the URL; a choice stays while what it names comes and goes.

Streamlit carries a choice from page to page where both have a field of that name, in the URL too: so fields of one name
mean one thing on all pages.
"""

from collections.abc import Callable, Sequence

import streamlit as st

ALL = "all"
Choices = Callable[[str], Sequence[str]]


def known(field: str, fresh: Sequence[str]) -> list[str]:
    """All values of a filter that this session has seen in order of name, those of `fresh` included."""
    seen: list[str] = st.session_state.setdefault(f"known_{field}", [ALL])
    asked = st.query_params.get(field, ALL)
    values = [ALL, *sorted({*seen, *fresh, asked} - {ALL})]
    st.session_state[f"known_{field}"] = values
    return values


def met(field: str, fresh: Sequence[str], run: float) -> list[str]:
    """The values of `field` that this session has met in `run` (its begin, epoch s), in the order they came up."""
    kept: tuple[float, list[str]] = st.session_state.get(f"met_{field}") or (run, [])
    seen = kept[1] if kept[0] == run else []
    values = [*seen, *(value for value in fresh if value not in seen)]
    st.session_state[f"met_{field}"] = (run, values)
    return values


def chosen(fields: Sequence[str], choices: Choices) -> list[str]:
    """One select box a field, side by side; what is chosen in each."""
    with row():
        return boxes(fields, choices)


def boxes(fields: Sequence[str], choices: Choices) -> list[str]:
    """The select boxes alone, for a row that holds more."""
    found = []
    for field in fields:
        options = known(field, choices(field))
        found.append(st.selectbox(field.capitalize(), options, key=field, bind="query-params", width=190) or ALL)
    return found


def row() -> st.delta_generator.DeltaGenerator:
    """The row that filters stand in."""
    return st.container(key="filters", horizontal=True, gap="small")


def is_new(fields: Sequence[str], choices: Choices) -> bool:
    """Whether a value has come up that the boxes do not offer yet."""
    return any(len(known(field, ())) != len(known(field, choices(field))) for field in fields)
