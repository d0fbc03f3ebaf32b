"""Sites whose Spark is a standalone cluster: a worker that is killed takes executors along, and no result is lost."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
import yaml

from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import THREE_WAY_JOIN, write_streams
from tests.hosts.conftest import without_time, written
from tests.hosts.spark.conftest import SPARK, running, streams_of_files

SITES = {"a": "paris", "b": "lyon", "c": "lyon"}
DEPLOY = "org.apache.spark.deploy"


class Cluster:
    """A master and two workers on this machine, each a process in a group of its own with what it starts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        port, ui = _free_port(), _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._start("master", f"{DEPLOY}.master.Master", "--port", str(port), "--webui-port", str(ui))
        self._await("master", "New state: ALIVE")
        for name in ("first", "second"):
            arguments = ["--cores", "2", "--memory", "2g", "--webui-port", "0", "--work-dir", str(directory / name)]
            self._start(name, f"{DEPLOY}.worker.Worker", *arguments, self.url)
            self._await(name, "Successfully registered with master")

    def _start(self, name: str, main: str, *arguments: str) -> None:
        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [str(spark_class), main, "--host", "127.0.0.1", *arguments]
        with self._log(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _await(self, name: str, text: str) -> None:
        while text not in self._log(name).read_text():
            assert self._processes[name].poll() is None, self._log(name).read_text()[-3_000:]
            time.sleep(0.1)

    def has_executors(self, worker: str) -> bool:
        return bool(list((self._directory / worker).glob("app-*/[0-9]*/stderr")))

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in list(self._processes):
            self.kill(name)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    directory.mkdir()
    started = Cluster(directory)
    try:
        yield started
    finally:
        started.stop()


@pytest.mark.sweep
def test_a_killed_worker_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=240, rows_per_file=20)
    expected = oracle(THREE_WAY_JOIN, tables)
    with cluster(tmp_path / "cluster") as spark:
        settings = {
            **SPARK,
            "spark.master": spark.url,
            "spark.cores.max": 2,
            "spark.executor.cores": 1,
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        }
        content = {
            "topology": {"links": [["paris", "lyon", 0.004]]},
            "directory": "state",
            "streams": streams_of_files(SITES, "1 second"),
            "queries": {
                "joined": {"sql": THREE_WAY_JOIN, "sink": "lyon", "output": {"format": "parquet", "path": "results"}}
            },
            "adapt": False,
            "spark": settings,
        }
        file = tmp_path / "network.yaml"
        file.write_text(yaml.safe_dump(content))
        with running(file, ("paris", "lyon")) as processes:
            processes.wait_for_rows(tmp_path / "results", expected.num_rows // 8)
            assert spark.has_executors("first")
            spark.kill("first")
            results = processes.wait_for_rows(tmp_path / "results", expected.num_rows)
    assert_same_rows(results, expected)
    assert_same_rows(without_time(written(tmp_path / "results")), expected)
