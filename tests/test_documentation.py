"""What README and docs show is true: code runs, commands exist and print that, links lead somewhere."""

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
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = PAGES[0].read_text()


@dataclass(frozen=True)
class Block:
    """A piece of code: its language, for a file its name, and where it starts."""

    language: str
    name: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [Block(block[1], block[2], block[3], text[: block.start()].count("\n") + 1) for block in found]


RUN = ("python", "console", "yaml")
RUNNABLE = [page for page in PAGES if any(block.language in RUN for block in blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_every_block_runs(page: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other in an empty directory, as a reader would; those in Python see what those before have made."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    try:
        for block in blocks(page):
            if block.language == "yaml":
                Path(block.name).write_text(block.text)
            elif block.language == "python":
                exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            elif block.language == "console":
                run_commands(block.text)
    finally:
        for running in spark.streams.active:
            running.stop()


def run_commands(text: str) -> None:
    """Each `$ braid ..`, with the output shown below it, if any is."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = command.split()
        assert program == "braid", command
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        if expected.strip():
            assert result.output == expected


def test_pages_with_code_are_found() -> None:
    names = {page.name for page in RUNNABLE}
    assert names >= {"README.md", "quickstart.md", "operating.md", "plan-changes.md", "planning.md"}


def test_the_error_shown_is_the_error_given() -> None:
    times = pa.array([0], pa.timestamp("us"))
    streams = {"flights": pa.table({"ts": times, "num": [1]}), "bags": pa.table({"ts": times, "flight": [1]})}
    text = "SELECT f.num\nFROM flights [NOW] AS f, bags [NOW] AS b\nWHERE f.num = b.flihgt"
    with pytest.raises(braid.QueryError) as caught:
        braid.run(text, streams)
    assert str(caught.value) in README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE)) <= targets


def test_the_picture_is_the_one_that_is_drawn(tmp_path: Path) -> None:
    from benchmarks.plan_change import PICTURE, draw

    assert draw(tmp_path / "picture.svg") >= 2
    assert PICTURE.exists()
