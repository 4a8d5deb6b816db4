"""The documents hold together: links lead somewhere, pictures are there and small."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
MOST_BYTES, MOST_IN_ALL = 250_000, 2_500_000


def anchors(text: str) -> set[str]:
    """What a link may point to inside a document."""
    heads = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), f"{link} in {document.name}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{link} in {document.name}"


def test_pictures_are_small_and_each_is_shown() -> None:
    pictures = sorted((ROOT / "docs" / "images").iterdir())
    sizes = {path.name: path.stat().st_size for path in pictures}
    assert all(size <= MOST_BYTES for size in sizes.values()), sizes
    assert sum(sizes.values()) <= MOST_IN_ALL
    shown = {Path(link).name for document in DOCUMENTS for link in LINK.findall(document.read_text(encoding="utf-8"))}
    assert sizes.keys() <= shown
