"""README and docs are correct: their code runs, commands print what is shown, and links are not broken."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import braid
from braid.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = PAGES[0].read_text()


@dataclass(frozen=True)
class Block:
    """A code block: its language, the name of its file if it is one, its text and its first line."""

    language: str
    name: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    matches = re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [Block(match[1], match[2], match[3], text[: match.start()].count("\n") + 1) for match in matches]


TESTED_LANGUAGES = ("python", "console", "yaml")
RUNNABLE = [page for page in PAGES if any(block.language in TESTED_LANGUAGES for block in blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_every_block_runs(page: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in order, in an empty directory. Python blocks share their variables."""
    monkeypatch.chdir(tmp_path)
    variables: dict[str, Any] = {}
    try:
        for block in blocks(page):
            if block.language == "yaml":
                Path(block.name).write_text(block.text)
            elif block.language == "python":
                exec(compile("\n" * block.line + block.text, str(page), "exec"), variables)
            elif block.language == "console":
                run_commands(block.text)
    finally:
        for running in spark.streams.active:
            running.stop()


def run_commands(text: str) -> None:
    """Run each `$ braid ..` and compare its output with the output shown below it, if any."""
    for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = example.partition("\n")
        program, *arguments = command.split()
        assert program == "braid", command
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        if expected.strip():
            assert result.output == expected


def test_pages_with_code_are_found() -> None:
    names = {page.name for page in RUNNABLE}
    assert names >= {"README.md", "quickstart.md", "operating.md", "plan-changes.md", "planning.md", "sites.md"}


def test_the_error_shown_in_the_readme_is_the_error_raised() -> None:
    times = pa.array([0], pa.timestamp("us"))
    streams = {"flights": pa.table({"ts": times, "num": [1]}), "bags": pa.table({"ts": times, "flight": [1]})}
    text = "SELECT f.num\nFROM flights [NOW] AS f, bags [NOW] AS b\nWHERE f.num = b.flihgt"
    with pytest.raises(braid.QueryError) as caught:
        braid.run(text, streams)
    assert str(caught.value) in README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_are_not_broken(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE)) <= targets


def test_the_picture_of_a_plan_change_can_be_drawn(tmp_path: Path) -> None:
    from benchmarks.plan_change import PICTURE, draw

    assert draw(tmp_path / "picture.svg") >= 2
    assert PICTURE.exists()
