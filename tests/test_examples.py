"""Every example runs and gives the same results as the oracle."""

from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import braid
from braid.testing import assert_same_rows, oracle

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text())


def test_the_examples_are_found() -> None:
    assert NAMES == ["airline", "building_sensors", "network_monitoring", "regions", "stock_ticks"]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_equals_the_oracle(name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory of examples is on the path, as it is for `python examples/airline.py`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = run_path(str(EXAMPLES / f"{name}.py"), run_name=name)
    result = example["main"](braid.Session(spark))
    assert result.num_rows
    assert_same_rows(result, oracle(example["QUERY"], example["streams"]()))
