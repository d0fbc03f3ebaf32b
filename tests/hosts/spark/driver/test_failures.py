"""How Spark's failures are explained, and which of them are wrong input."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from braid.errors import FileError, RunError
from braid.hosts.spark.driver.failures import error_for


@pytest.mark.parametrize(
    ("logged", "setting"),
    [
        ("Exception: Master must either be yarn or start with spark", "spark.master"),
        ("Invalid maximum heap size: -Xmxlots", "spark.driver.memory"),
    ],
)
def test_a_setting_with_which_java_does_not_start_is_wrong_input(logged: str, setting: str, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text(f"{logged}\n")
    error = error_for("Spark did not start", ConnectionRefusedError("[Errno 111]"), log)
    assert isinstance(error, FileError)
    assert f"the setting {setting} is wrong ({logged.removeprefix('Exception: ')})" in str(error)


def test_an_exception_in_a_python_worker_is_shown_without_its_traceback(spark: SparkSession) -> None:
    def fail(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        raise LookupError("no row is good enough")

    with pytest.raises(PySparkException) as raised:
        spark.range(1).mapInPandas(fail, "id long").collect()
    error = error_for("the query failed", raised.value)
    assert isinstance(error, RunError)
    assert str(error) == "the query failed: a Python worker of Spark's raised LookupError: no row is good enough"
