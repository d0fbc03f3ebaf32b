"""Every example runs, and gives what the oracle gives."""

from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import braid
from braid.testing import assert_same_rows, oracle

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text())


def test_there_are_examples() -> None:
    assert NAMES == ["airline", "building_sensors", "network_monitoring", "stock_ticks"]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_right(name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script, `python examples/airline.py`, finds what it imports: in its own directory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = run_path(str(EXAMPLES / f"{name}.py"), run_name=name)
    result = example["main"](braid.Session(spark))
    assert result.num_rows
    assert_same_rows(result, oracle(example["QUERY"], example["streams"]()))
