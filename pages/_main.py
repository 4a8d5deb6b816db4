"""Entry of every session: page settings, style and the navigation on top."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
STATIC = HERE / "_ui" / "static"

st.set_page_config(page_title="Headway", page_icon=str(STATIC / "icon.svg"), layout="wide")
st.html(STATIC / "page.css")
st.navigation([st.Page(HERE / "fleet.py", title="Fleet", default=True)], position="top").run()
