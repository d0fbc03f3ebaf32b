"""The documents that describe the code name every folder, and only paths that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "braid"
DOCS = ROOT / "docs"
ARCHITECTURE = DOCS / "architecture.md"
PAGES = [ARCHITECTURE, DOCS / "glossary.md", *sorted(DOCS.glob("life-of-*.md"))]

OUTSIDE = ("benchmarks/", "docs/", "examples/", "experiments/", "src/", "tests/")
"""Paths that begin with one of these are relative to the repository. All others are below `src/braid`."""


def named_paths(page: Path) -> set[str]:
    """Everything in backticks that has a slash and ends in a slash or in `.py`."""
    quoted = re.findall(r"`([^`\s]+)`", page.read_text(encoding="utf-8"))
    return {text for text in quoted if "/" in text and text.endswith(("/", ".py"))}


def folders() -> list[str]:
    """Every folder below `src/braid` that holds Python files, as the documents write it."""
    parents = {path.parent for path in SOURCES.rglob("*.py")} - {SOURCES}
    return sorted(f"{path.relative_to(SOURCES)}/" for path in parents)


@pytest.mark.parametrize("folder", folders())
def test_the_map_describes_every_folder(folder: str) -> None:
    """Each folder has a row of its own, with a description."""
    assert re.search(rf"^\| `{re.escape(folder)}` \| \S.* \|$", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_named_exists(page: Path) -> None:
    paths = named_paths(page)
    assert paths, "no path was found; the pattern is wrong"
    missing = [path for path in sorted(paths) if not ((ROOT if path.startswith(OUTSIDE) else SOURCES) / path).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_is_in_the_file_given_for_it(page: Path) -> None:
    """Checks each "`name` in `path.py`"; of `Class.method`, the method is looked for."""
    text = page.read_text(encoding="utf-8")
    missing = []
    for name, path in re.findall(r"`([\w.]+)`\s+(?:in|of)\s+`([\w/]+\.py)`", text):
        source = (ROOT if path.startswith(OUTSIDE) else SOURCES) / path
        if not re.search(rf"\b{name.split('.')[-1]}\b", source.read_text(encoding="utf-8")):
            missing.append((name, path))
    assert missing == []


def test_the_glossary_explains_the_words_to_know_first() -> None:
    text = " ".join((DOCS / "glossary.md").read_text(encoding="utf-8").split())
    _, _, words = text.partition("Twenty words come first")
    first = words.split(": ", 1)[1].split(".", 1)[0].split(", ")
    assert len(set(first)) == 20
    missing = [word for word in first if f"**{word}**" not in text.lower()]
    assert missing == []


def test_the_three_journeys_are_checked() -> None:
    names = {page.name for page in PAGES}
    assert names >= {"life-of-a-query.md", "life-of-a-tuple.md", "life-of-a-statistic.md"}
