"""Every example runs, and gives what the oracle gives."""

from importlib import import_module
from pathlib import Path
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
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    example = import_module(f"examples.{name}")
    result = example.main(braid.Session(spark))
    assert result.num_rows
    assert_same_rows(result, oracle(example.QUERY, example.streams()))
