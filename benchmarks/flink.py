"""Braid, Flink SQL and Spark's own joins on the same rows.

Run by `make bench-flink`, which sets Flink up in a virtual environment of its own, or by `python -m benchmarks.flink
PYTHON [words of workload names] [--seconds 20] [--limit 240]`, where PYTHON has Flink. Rates are input rows per second
of whole runs, from the submission of a query to its last result, in a JVM that has run the query before. The results of
every run are compared with DuckDB's before a figure is shown.

Flink reads CSV, because its Parquet reader does not come with its Python package, and drops the results of the run that
is measured. Braid and Spark read and write Parquet. Times are whole milliseconds, as Flink's time columns are. A job
that takes longer than `--limit` is ended, and the page says so. The page is written again after each workload.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from benchmarks.flink_sql import declare_results, declare_stream, interval_joins, regular_joins
from benchmarks.floors import STATEFUL, floors
from benchmarks.spark import MEMORY, Contest, Files, braid_results, chain_results, check_equal, contests, run_duckdb
from benchmarks.workload import Workload, a_day_later
from braid.hosts.spark.driver.local_spark import local_spark

RESULTS = Path(__file__).parent.parent / "docs" / "results"
WORDS = ("(R4)", "chain", "8 streams", "zipf")
"""The workloads of `benchmarks.spark` that Flink runs too."""

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "taskmanager.memory.managed.size": "4gb",
    "table.exec.source.idle-timeout": "0",
}
SPARK = "Spark, in memory, 1,000,000 rows a batch"
FLOOR = "nothing joined, 1,000,000 rows a batch"
STATE = {"heap": "hashmap", "RocksDB": "rocksdb"}

Rate = float | None
"""Rows per second of a whole run; None if it took longer than the limit."""


class FirstRun(float):
    """The rate of a first run, where two do not fit into the limit: it writes its results, in a cold JVM."""


console = Console()


class MillisecondWorkload(Workload):
    """A workload whose times are whole milliseconds."""

    def batches(self) -> list[dict[str, pa.RecordBatch]]:
        return [{name: _in_milliseconds(rows) for name, rows in batch.items()} for batch in super().batches()]


def _in_milliseconds(rows: pa.RecordBatch) -> pa.RecordBatch:
    rows = rows.set_column(0, "ts", pc.floor_temporal(rows.column("ts"), unit="millisecond"))
    # Spark's joins drop rows at the first moment of 1970, where their watermark is; there are some of every stream.
    return a_day_later(rows)


@dataclass(frozen=True)
class FlinkJob:
    """A query for Flink: its text and the settings that it needs. `tables` are those that runs write to, in turn."""

    name: str
    text: str
    settings: dict[str, str]
    tables: tuple[str, ...] = ("written", "dropped")


def flink_jobs(workload: Workload) -> Iterator[FlinkJob]:
    # A chain begins with the stream that both others are joined with.
    order = tuple(sorted(workload.streams, key=lambda name: -len(workload.columns[name])))
    for name, backend in STATE.items():
        settings = {**SETTINGS, "state.backend.type": backend}
        # With RocksDB a run takes minutes: the time in which Java becomes warm counts little.
        tables = ("written",) if name == "RocksDB" else ("written", "dropped")
        yield FlinkJob(f"Flink, {name}", interval_joins(workload, order), settings, tables)
    settings = {**SETTINGS, "state.backend.type": "hashmap", "table.optimizer.multi-join.enabled": "true"}
    yield FlinkJob("Flink, multi-join", regular_joins(workload, order), settings)


def write_csv(files: Files) -> dict[str, Path]:
    """The input as Flink reads it: one file for each stream, so that its rows come in the order of their times."""
    paths = {}
    for name, keys in files.contest.workload.columns.items():
        paths[name] = files.directory / f"{name}.csv"
        source = f"read_parquet({[str(path) for path in files.first(name, files.contest.workload.count)]})"
        columns = ", ".join(["epoch_ms(ts)", '"row"', *keys])
        duckdb.sql(f"COPY (SELECT {columns} FROM {source} ORDER BY ts) TO '{paths[name]}' (FORMAT csv, HEADER false)")
    return paths


def run_flink(python: str, job: FlinkJob, files: Files, inputs: dict[str, Path], target: Path, limit: int) -> Rate:
    """The rows per second of the last run that ends in time. The first run writes its results to `target`."""
    workload = files.contest.workload
    statements = [
        declare_stream(name, dict.fromkeys(workload.columns[name], "BIGINT"), path) for name, path in inputs.items()
    ]
    statements += [
        declare_results("written", workload.outputs, target),
        declare_results("dropped", workload.outputs, None),
    ]
    content = {
        "settings": job.settings,
        "statements": statements,
        "inserts": [f"INSERT INTO {table} {job.text}" for table in job.tables],
    }
    process = subprocess.Popen(
        [python, str(Path(__file__).with_name("flink_job.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JVM_ARGS": f"-Xmx{MEMORY}"},
        start_new_session=True,
    )
    try:
        printed, errors = process.communicate(json.dumps(content), limit)
    except subprocess.TimeoutExpired:
        _end(process)
        printed, errors = process.communicate()
    else:
        _end(process)
        if process.returncode:
            raise SystemExit(f"{job.name} failed:\n{errors[-3_000:]}")
    runs = [line.removeprefix("seconds:") for line in printed.splitlines() if line.startswith("seconds:")]
    if not runs:
        return None
    rate = workload.count * workload.batch_rows / float(runs[-1])
    return FirstRun(rate) if len(runs) == 1 else rate


def _end(process: subprocess.Popen[str]) -> None:
    """End a Flink: its Java is in the same process session, and outlives its Python."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def check_csv(target: Path, workload: Workload, expected: Path) -> None:
    """Refuse results of Flink that are not DuckDB's."""
    columns = dict.fromkeys(workload.outputs, "BIGINT")
    parquet = target.with_suffix(".parquet")
    duckdb.sql(
        f"COPY (FROM read_csv('{target}/*', header = false, columns = {columns})) TO '{parquet}' (FORMAT parquet)"
    )
    check_equal(parquet, expected)


def run_on_spark(result: DataFrame, rows: int, target: Path, limit: int) -> Rate:
    """The rows per second of a whole run, which writes its results to `target`."""
    # Tasks of a query that is ended at the limit write for a moment longer.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        writer = result.writeStream.format("parquet").option("path", str(target))
        writer = writer.option("parquet.enable.dictionary", "false").option("checkpointLocation", checkpoint)
        started = time.perf_counter()
        running = writer.trigger(availableNow=True).start()
        try:
            if not running.awaitTermination(limit):
                return None
            whole = time.perf_counter() - started
            batches = ", ".join(f"{one.durationMs['triggerExecution'] / 1_000:.2f}" for one in running.recentProgress)
            console.print(f"{whole:.2f} s, of which batches of {batches} s", highlight=False)
            return rows / whole
        finally:
            running.stop()


@dataclass(frozen=True)
class Prepared:
    """A contest with its input in files, and what DuckDB answers."""

    files: Files
    expected: Path
    limit: int
    """The seconds that the runs of one job may take."""

    @classmethod
    def of(cls, contest: Contest, directory: Path, limit: int) -> Prepared:
        files, expected = Files(directory / "input", contest), directory / "duckdb.parquet"
        with console.status(f"{contest.workload.name}: writing the input"):
            files.write()
            run_duckdb(files, contest.workload.count, expected)
        return cls(files, expected, limit)

    @property
    def workload(self) -> Workload:
        workload = self.files.contest.workload
        assert isinstance(workload, Workload)
        return workload

    def flink_rates(self, python: str) -> dict[str, Rate]:
        rates = {}
        inputs = write_csv(self.files)
        for job in flink_jobs(self.workload):
            target = self.expected.with_name(job.name.replace(", ", "_").replace(" ", "_"))
            with console.status(f"{self.workload.name}: {job.name}"):
                rates[job.name] = run_flink(python, job, self.files, inputs, target, self.limit)
            if rates[job.name] is not None:
                check_csv(target, self.workload, self.expected)
            self._show(job.name, rates[job.name])
        return rates

    @property
    def rows(self) -> int:
        return self.workload.count * self.workload.batch_rows

    def spark_rates(self, spark: SparkSession) -> dict[str, Rate]:
        """The rates of Braid in its second run of each batch size, and of Spark's own joins in their only one."""
        rates, count = {}, self.workload.count
        for turn in ("warm", "measured"):
            for step in self.files.contest.steps:
                name = f"Braid, {step * self.workload.batch_rows:,} rows a batch"
                with console.status(f"{self.workload.name}: {name}, {turn}"):
                    rates[name] = self._run(braid_results(self.files, spark, step, count), f"{turn}{step}")
                self._show(f"{name} ({turn})", rates[name])
        step = max(self.files.contest.steps)
        for turn in ("warm", "measured"):
            streams = self.files.streams(spark, step, count)
            moved = floors(streams, self.workload.streams, len(self.workload.outputs))[STATEFUL]
            with console.status(f"{self.workload.name}: {FLOOR}, {turn}"):
                rates[FLOOR] = run_on_spark(moved, self.rows, self.expected.with_name(f"moved {turn}"), self.limit)
            self._show(f"{FLOOR} ({turn})", rates[FLOOR])
        with console.status(f"{self.workload.name}: {SPARK}"):
            rates[SPARK] = self._run(chain_results(self.files, spark, step, count, "in memory"), "chain")
        self._show(SPARK, rates[SPARK])
        return rates

    def _run(self, result: DataFrame, target: str) -> Rate:
        directory = self.expected.with_name(target)
        rate = run_on_spark(result, self.rows, directory, self.limit)
        if rate is not None:
            check_equal(directory, self.expected)
        return rate

    def _show(self, name: str, rate: Rate) -> None:
        console.print(f"{self.workload.name}: {name}: {shown(rate, self.limit)}", highlight=False)


def chosen_contests(words: list[str], seconds: int) -> list[Contest]:
    chosen = [contest for contest in contests() if any(word in contest.workload.name for word in words or WORDS)]
    workloads = [{**vars(contest.workload), "seconds": seconds} for contest in chosen]
    return [
        replace(one, workload=MillisecondWorkload(**workload)) for one, workload in zip(chosen, workloads, strict=True)
    ]


def page(contest: Prepared, rates: dict[str, Rate], earlier: str) -> str:
    """The page with these rates. Workloads that are only on the earlier page keep their rows."""
    head = ["workload", "rows in", *rates, "Braid / best of Flink", "Braid / Flink's interval joins"]
    rows, name = rows_of(earlier, head), contest.workload.name
    cells = [f"{contest.rows:,}", *(shown(rate, contest.limit) for rate in rates.values())]
    rows[name] = _row([name, *cells, ratio(rates, "Flink"), ratio(rates, "Flink, heap")])
    lines = ["# Beside Flink (`make bench-flink`)", "", _row(head), "|---" * len(head) + "|", *rows.values()]
    return "\n".join([*lines, NOTES, ""])


def rows_of(earlier: str, head: list[str]) -> dict[str, str]:
    """The rows of the table on an earlier page, by workload; none if its columns are others."""
    table = [line for line in earlier.splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in table[1:]} if table[:1] == [_row(head)] else {}


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def shown(rate: Rate, limit: int) -> str:
    if rate is None:
        return f"over {limit} s"
    return f"{float(rate):,.0f}{' (first run)' if isinstance(rate, FirstRun) else ''}"


def ratio(rates: dict[str, Rate], peer: str) -> str:
    """How many times faster the faster run of Braid is than the fastest one of a peer."""
    braid, best = (
        max((rate for name, rate in rates.items() if name.startswith(system) and rate), default=None)
        for system in ("Braid", peer)
    )
    return "-" if braid is None or best is None else f"{braid / best:.1f}x"


NOTES = """
Input rows per second of whole runs, from the submission of a query to its last result, in a JVM that has run the same
query before. The results of all are those of DuckDB. There are 200,000 rows for each second of event time. Flink 2.3
reads CSV, because its Parquet reader does not come from PyPI, drops the results of the measured run, and takes no
checkpoints. A first run, which writes its results, is measured with RocksDB, and where two runs of a job do not fit
into the time that it has. Braid and Spark read Parquet, write Parquet and commit every micro-batch. Each has two cores
and 14 GB. Flink's joins are interval joins, which forget rows as Braid's windows do. Its multi-join operator takes
regular joins, whose state grows without limit. "Nothing joined" is how fast Spark reads these rows, serializes and
shuffles them, gives them to a stateful operator in Python that keeps nothing, and writes a row for each. Braid does
all of this too, so that a multiple of Flink's rate that is above it is out of reach."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink")
    parser.add_argument("python", help="a Python that has Flink")
    parser.add_argument("words", nargs="*", help="words of workload names; without any, all")
    parser.add_argument("--seconds", type=int, default=20, help="seconds of event time, with 200,000 rows each")
    parser.add_argument("--limit", type=int, default=240, help="the seconds that the runs of one job may take")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        chosen = chosen_contests(given.words, given.seconds)
        prepared = [Prepared.of(contest, Path(name, str(n)), given.limit) for n, contest in enumerate(chosen)]
        # One after the other: both take most of the memory.
        flink = [contest.flink_rates(given.python) for contest in prepared]
        settings = {"spark.driver.memory": MEMORY, "spark.sql.streaming.numRecentProgressUpdates": "1000"}
        spark = local_spark(settings=settings)
        spark.sparkContext.setLogLevel("ERROR")
        path = RESULTS / "flink.md"
        for contest, rates in zip(prepared, flink, strict=True):
            earlier = path.read_text() if path.exists() else ""
            path.write_text(page(contest, contest.spark_rates(spark) | rates, earlier))
        spark.stop()
    console.print(path.read_text(), markup=False)


if __name__ == "__main__":
    main()
