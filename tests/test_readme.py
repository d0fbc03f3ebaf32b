"""README is true: its code runs, its error is what a user sees, its links and commands exist."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import braid

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_every_python_block_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_error_shown_is_the_error_given() -> None:
    times = pa.array([0], pa.timestamp("us"))
    streams = {"flights": pa.table({"ts": times, "num": [1]}), "bags": pa.table({"ts": times, "flight": [1]})}
    text = "SELECT f.num\nFROM flights [NOW] AS f, bags [NOW] AS b\nWHERE f.num = b.flihgt"
    with pytest.raises(braid.QueryError) as caught:
        braid.run(text, streams)
    assert str(caught.value) in README


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE)) <= targets
