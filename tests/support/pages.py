"""Pages run by Streamlit's own test driver, and the words they show."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGES = Path(__file__).resolve().parents[2] / "pages"


def at(page: str, **query: str) -> AppTest:
    """The page of that file, opened with a query."""
    app = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=30)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def session(page: str, **query: str) -> AppTest:
    """The whole dashboard, opened at that page: links lead from page to page."""
    app = AppTest.from_file(str(PAGES / "_main.py"), default_timeout=30)
    app.run()
    app.switch_page(f"{page}.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def texts(app: AppTest) -> str:
    """All markup of the page in one string."""
    return " ".join(str(getattr(e, "body", "") or e.proto.body) for e in app.get("html"))


def figures(app: AppTest) -> int:
    """How many components (bar, figures) are mounted."""
    return len(app.get("bidi_component"))
