"""Braid, Spark's own joins and Flink SQL on the same rows.

Run by `make bench-flink`, which sets Flink up in a virtual environment of its own, or by `python -m benchmarks.flink
PYTHON [words of workload names]`, where PYTHON has Flink. Rates are input rows per second of whole runs, from the
submission of a query to its last result, in a JVM that has run the query before. The results of every run are compared
with DuckDB's before a figure is shown.

Flink reads CSV, because its Parquet reader does not come with its Python package, and drops the results of the run that
is measured. Braid and Spark read and write Parquet. Times are whole milliseconds, as Flink's time columns are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from benchmarks.flink_sql import declare_results, declare_stream, interval_joins, regular_joins
from benchmarks.spark import MEMORY, Contest, Files, braid_results, chain_results, check_equal, contests, run_duckdb
from benchmarks.workload import Workload
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
STATE = {"heap": "hashmap", "RocksDB": "rocksdb"}

console = Console()


class MillisecondWorkload(Workload):
    """A workload whose times are whole milliseconds."""

    def batches(self) -> list[dict[str, pa.RecordBatch]]:
        return [{name: _in_milliseconds(rows) for name, rows in batch.items()} for batch in super().batches()]


def _in_milliseconds(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.set_column(0, "ts", pc.floor_temporal(rows.column("ts"), unit="millisecond"))


@dataclass(frozen=True)
class FlinkJob:
    """A query for Flink: its text and the settings that it needs."""

    name: str
    text: str
    settings: dict[str, str]


def flink_jobs(workload: Workload) -> Iterator[FlinkJob]:
    # A chain begins with the stream that both others are joined with.
    order = tuple(sorted(workload.streams, key=lambda name: -len(workload.columns[name])))
    for name, backend in STATE.items():
        settings = {**SETTINGS, "state.backend.type": backend}
        yield FlinkJob(f"Flink, {name}", interval_joins(workload, order), settings)
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


def run_flink(python: str, job: FlinkJob, files: Files, inputs: dict[str, Path], target: Path) -> float:
    """The rows per second of a run whose results are dropped; a run before it writes them to `target`."""
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
        "inserts": [f"INSERT INTO {table} {job.text}" for table in ("written", "dropped")],
    }
    process = subprocess.run(
        [python, str(Path(__file__).with_name("flink_job.py"))],
        input=json.dumps(content),
        capture_output=True,
        text=True,
        env={**os.environ, "JVM_ARGS": f"-Xmx{MEMORY}"},
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{job.name} failed:\n{process.stderr[-3_000:]}")
    return workload.count * workload.batch_rows / json.loads(process.stdout.splitlines()[-1])[-1]


def check_csv(target: Path, workload: Workload, expected: Path) -> None:
    """Refuse results of Flink that are not DuckDB's."""
    columns = dict.fromkeys(workload.outputs, "BIGINT")
    parquet = target.with_suffix(".parquet")
    duckdb.sql(
        f"COPY (FROM read_csv('{target}/*', header = false, columns = {columns})) TO '{parquet}' (FORMAT parquet)"
    )
    check_equal(parquet, expected)


def run_on_spark(result: DataFrame, rows: int, target: Path) -> float:
    """The rows per second of a whole run, which writes its results to `target`."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = result.writeStream.format("parquet").option("path", str(target))
        writer = writer.option("parquet.enable.dictionary", "false").option("checkpointLocation", checkpoint)
        started = time.perf_counter()
        writer.trigger(availableNow=True).start().awaitTermination()
        return rows / (time.perf_counter() - started)


def compete(contest: Contest, spark: SparkSession, python: str, directory: Path) -> dict[str, float]:
    """The rows per second of everyone."""
    workload = contest.workload
    assert isinstance(workload, Workload)
    files = Files(directory / "input", contest)
    rows = workload.count * workload.batch_rows
    rates: dict[str, float] = {}

    def show(name: str, rate: float) -> None:
        rates[name] = rate
        console.print(f"{workload.name}: {name}: {rate:,.0f} rows/s")

    with console.status(f"{workload.name}: writing the input"):
        files.write()
        inputs = write_csv(files)
        expected = directory / "duckdb.parquet"
        run_duckdb(files, workload.count, expected)
    for turn in ("warm", "measured"):
        for step in contest.steps:
            name = f"Braid, {step * workload.batch_rows:,} rows a batch"
            target = directory / f"{turn}{step}"
            with console.status(f"{workload.name}: {name}, {turn}"):
                rate = run_on_spark(braid_results(files, spark, step, workload.count), rows, target)
            check_equal(target, expected)
            if turn == "measured":
                show(name, rate)
    step = contest.steps[-1]
    with console.status(f"{workload.name}: Spark"):
        rate = run_on_spark(chain_results(files, spark, step, workload.count, "in memory"), rows, directory / "spark")
    check_equal(directory / "spark", expected)
    show(f"Spark's own joins, in memory, {step * workload.batch_rows:,} rows a batch", rate)
    for job in flink_jobs(workload):
        target = directory / job.name.replace(", ", "_").replace(" ", "_")
        with console.status(f"{workload.name}: {job.name}"):
            rate = run_flink(python, job, files, inputs, target)
        check_csv(target, workload, expected)
        show(job.name, rate)
    return rates


def chosen_contests(words: list[str]) -> list[Contest]:
    chosen = [contest for contest in contests() if any(word in contest.workload.name for word in words or WORDS)]
    return [replace(contest, workload=MillisecondWorkload(**vars(contest.workload))) for contest in chosen]


def page(results: dict[str, dict[str, float]]) -> str:
    columns = next(iter(results.values()))
    head = ["workload", *columns, "Braid / best of Flink"]
    lines = [
        "# Beside Flink (`make bench-flink`)",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
    ]
    for name, rates in results.items():
        lines.append(f"| {name} | {' | '.join(f'{rate:,.0f}' for rate in rates.values())} | {ratio(rates):.1f}x |")
    return "\n".join([*lines, NOTES, ""])


def ratio(rates: dict[str, float]) -> float:
    """How many times faster the faster run of Braid is than the fastest one of Flink."""
    best = {
        system: max(rate for name, rate in rates.items() if name.startswith(system)) for system in ("Braid", "Flink")
    }
    return best["Braid"] / best["Flink"]


NOTES = """
Input rows per second of whole runs, in a JVM that has run the same query before; the results of all are those of
DuckDB. Flink 2.3 reads CSV, because its Parquet reader does not come from PyPI, drops the results of the measured run,
and takes no checkpoints. Braid and Spark read Parquet, write Parquet and commit every micro-batch. All have two cores
and 14 GB. The multi-join operator keeps its state for ever; the other joins of Flink are interval joins."""


def main() -> None:
    python, *words = sys.argv[1:]
    settings = {"spark.driver.memory": MEMORY, "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    spark = local_spark(settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    results = {}
    for contest in chosen_contests(words):
        with tempfile.TemporaryDirectory() as directory:
            results[contest.workload.name] = compete(contest, spark, python, Path(directory))
        if not words:
            (RESULTS / "flink.md").write_text(page(results))
    spark.stop()
    console.print(page(results), markup=False)


if __name__ == "__main__":
    main()
