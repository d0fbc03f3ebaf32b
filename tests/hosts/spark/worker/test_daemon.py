"""The daemon of a local Spark's workers: they begin with their modules loaded, if they run the program's Python."""

import sys
from typing import Any

import pytest

from braid.hosts.spark.driver.local_spark import LAUNCHER, runs_this_python


def test_workers_are_forks_of_a_process_that_has_loaded_their_modules(spark: Any) -> None:
    def loaded(_: int) -> list[str]:
        return [module.__name__ for module in sys.modules["__main__"].LOADED]

    (names,) = spark.sparkContext.parallelize([0], 1).map(loaded).collect()
    assert "braid.hosts.spark.worker.task" in names


@pytest.mark.parametrize(
    ("master", "python", "expected"),
    [
        ("local[2]", sys.executable, True),
        ("local-cluster[1,1,1024]", str(LAUNCHER), True),
        ("local[2]", "/another/python", False),
        ("yarn", sys.executable, False),
    ],
)
def test_another_python_and_other_machines_need_not_have_braid(master: str, python: str, expected: bool) -> None:
    assert runs_this_python(master, python) is expected
