"""Entry of every session: page settings, style and the navigation on top."""

from contextlib import nullcontext
from pathlib import Path

import streamlit as st

from pages._ui import edits

HERE = Path(__file__).parent
STATIC = HERE / "_ui" / "static"
SHEETS = (
    "page.css",
    "tables.css",
    "lists.css",
)
#: File and title of each page; its path in the URL is the file's name, the first one's is /. What is live comes first,
#: then what explains it, then what changes it.
PAGES = (
    ("fleet", "Fleet"),
    ("queues", "Queues"),
    ("workflows", "Workflows"),
    ("decisions", "Decisions"),
    ("conversations", "Conversations"),
    ("kv", "KV"),
    ("power", "Power"),
    ("servers", "Servers"),
    ("debt", "SLO debt"),
    ("tuning", "Tuning"),
    ("whatif", "What-if"),
    ("scenarios", "Scenarios"),
    ("audit", "Audit"),
    ("settings", "Settings"),
)

st.set_page_config(page_title="Headway", page_icon=str(STATIC / "icon.svg"), layout="wide")
for sheet in SHEETS:
    st.html(STATIC / sheet)
pages = [st.Page(HERE / f"{name}.py", title=title, default=name == "fleet") for name, title in PAGES]
current = st.navigation(pages, position="top")
with st.container(key="phone-nav", horizontal=True, gap="small"):  # where the line on top has no room (page.css)
    for page in pages:
        is_here = page.url_path == current.url_path
        with st.container(key="phone-here", width="content") if is_here else nullcontext():
            st.page_link(page)
edits.close_question()  # whatever is drawn anew has no dialog
current.run()
