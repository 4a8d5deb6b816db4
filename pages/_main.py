"""Entry of every session: page settings, style and the navigation on top."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
STATIC = HERE / "_ui" / "static"
#: File and title of each page; its path in the URL is the file's name, the first one's is /.
PAGES = (
    *(("fleet", "Fleet"), ("queues", "Queues"), ("conversations", "Conversations"), ("kv", "KV"), ("power", "Power")),
    *(("debt", "SLO debt"), ("tuning", "Tuning"), ("servers", "Servers")),
    *(("decisions", "Decisions"),),
)

st.set_page_config(page_title="Headway", page_icon=str(STATIC / "icon.svg"), layout="wide")
for sheet in ("page.css", "tables.css"):
    st.html(STATIC / sheet)
pages = [st.Page(HERE / f"{name}.py", title=title, default=name == "fleet") for name, title in PAGES]
current = st.navigation(pages, position="top")
with st.container(key="phone-nav", horizontal=True, gap="small"):  # where the line on top has no room (page.css)
    for page in pages:
        st.page_link(page)
current.run()
