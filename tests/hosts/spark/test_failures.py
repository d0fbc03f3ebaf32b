"""What Spark's failures are told as, and whose fault they are."""

from pathlib import Path

import pytest

from braid.errors import FileError
from braid.hosts.spark.failures import error_for


@pytest.mark.parametrize(
    ("logged", "setting"),
    [
        ("Exception: Master must either be yarn or start with spark", "spark.master"),
        ("Invalid maximum heap size: -Xmxlots", "spark.driver.memory"),
    ],
)
def test_a_setting_that_ends_java_is_wrong_input(logged: str, setting: str, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text(f"{logged}\n")
    error = error_for("Spark did not start", ConnectionRefusedError("[Errno 111]"), log)
    assert isinstance(error, FileError)
    assert f"the setting {setting} is wrong ({logged.removeprefix('Exception: ')})" in str(error)
