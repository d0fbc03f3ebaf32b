"""Programs that tests start and kill, sites as processes with a Spark of their own, and stored checkpoints."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from braid.testing.stream_files import THREE_WAY_JOIN
from tests.hosts.conftest import without_time, written

SPARK = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2, "spark.master": "local[2]"}
"""Settings of a small Spark, for a network file."""


def streams_of_files(sites: Mapping[str, str], lateness: str) -> dict[str, Any]:
    """The `streams` of a network file, by the sites where they start; each micro-batch reads one file of each."""
    return {
        name: {
            "site": site,
            "format": "parquet",
            "path": f"streams/{name}",
            "options": {"maxFilesPerTrigger": 1},
            "lateness": lateness,
        }
        for name, site in sites.items()
    }


SITES = {"a": "paris", "b": "lyon", "c": "nice"}
"""Where each stream starts."""


def write_network(directory: Path, **more: Any) -> Path:
    """A network of three sites; each stream comes in files of 20 rows, one in each micro-batch."""
    content = {
        "topology": {"links": [["paris", "lyon", 0.004], ["lyon", "nice", 0.006]]},
        "directory": "state",
        "streams": streams_of_files(SITES, "1 second"),
        "queries": {
            "joined": {
                "sql": THREE_WAY_JOIN,
                "sink": "lyon",
                "planner": "phased",
                "statistics": "known.yaml",
                "output": {"format": "parquet", "path": "results"},
            }
        },
        "adapt": False,
        "spark": SPARK,
        **more,
    }
    known = {
        "rates": {"a": 10, "b": 12, "c": 9},
        "selectivities": {"a.k = b.k": 0.01, "b.k = c.k": 0.25},
    }
    (directory / "known.yaml").write_text(yaml.safe_dump(known))
    file = directory / "network.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


class Processes:
    """The processes of the sites, each in a process group of its own with its Java."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, site: str, braid: Sequence[str] = (sys.executable, "-m", "braid")) -> None:
        """Run a site; `braid` is how the command is called."""
        with (self._file.parent / f"{site}.log").open("ab") as log:
            command = [*braid, "site", str(self._file), "--name", site]
            self._running[site] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, site: str) -> None:
        process = self._running.pop(site)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def check(self) -> None:
        for site, process in self._running.items():
            log = self.log(site)[-3_000:]
            assert process.poll() is None, f"site {site} has ended:\n{log}"

    def log(self, site: str) -> str:
        return (self._file.parent / f"{site}.log").read_text()

    def stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()

    def wait_for_rows(self, results: Path, rows: int) -> pa.Table:
        """The results that a sink has written, once there are this many rows."""
        while True:
            self.check()
            committed = written(results)
            if committed.num_rows >= rows:
                return without_time(committed)
            time.sleep(0.2)


@contextmanager
def running(file: Path, sites: Iterable[str], others: Mapping[str, Sequence[str]] | None = None) -> Iterator[Processes]:
    """Run sites, and deploy the queries of the file. `others` are sites with the command by which they run `braid`."""
    processes = Processes(file)
    try:
        for site in sites:
            processes.start(site)
        for site, braid in (others or {}).items():
            processes.start(site, braid)
        run_braid("deploy", str(file), "--wait", "600")
        yield processes
    finally:
        processes.stop()


def run_braid(*arguments: str) -> str:
    """Run a command of `braid`, and return what it prints."""
    command = [sys.executable, "-m", "braid", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def drop(processes: Processes, file: Path) -> None:
    """Drop the query, and wait until no site has anything of it."""
    sites = file.parent / "state" / "sites"
    assert [path for path in sites.glob("*/*") if path.is_dir()]
    run_braid("drop", str(file), "--query", "joined")
    while [path for path in sites.glob("*/*") if path.is_dir()]:
        processes.check()
        time.sleep(0.2)
    assert "nothing is deployed" in run_braid("network", "status", str(file))


def log_of(directory: Path) -> str:
    """The end of what a program that works in this directory wrote to standard error."""
    return (directory / "stderr").read_text()[-3_000:]


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program and its workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
