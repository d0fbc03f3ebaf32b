"""Job files: mistakes in them are reported with their line, and values keep their spelling."""

from pathlib import Path

import pytest

from braid.files.job import load
from braid.files.paths import checkpoint_at
from tests.cli.conftest import braid, write_job

WRONG_FILES = {
    "not there": (None, "cannot read {file}: there is no such file; check the path"),
    "empty": ("", "{file} is empty"),
    "no YAML": ("streams: [", "{file}, line 1: not valid YAML"),
    "tabs": ("streams:\n\ta: 1", "{file}, line 2: not valid YAML: indent with spaces, not with a tab"),
    "a character that YAML forbids": ("streams: \0", "{file}: not valid YAML: "),
    "no mapping": ("- 1", "the file must be a mapping of names to values, not a list"),
    "unknown key": ("stream: {}\nqueries: {}", "line 1: the file has no key 'stream'; did you mean 'streams'?"),
    "no queries": ("streams: {}\n", "line 1: the file needs the key 'queries'"),
    "a key twice": ("streams: {}\nstreams: {}\n", "line 2: there are two keys 'streams'"),
    "unknown key of a stream": (
        "streams:\n  a:\n    format: json\n    latness: 1 s\nqueries: {}",
        "line 4: streams.a has no key 'latness'; did you mean 'lateness'?",
    ),
    "lateness without a unit": (
        "streams:\n  a:\n    format: json\n    lateness: 5\nqueries: {}",
        "line 4: streams.a.lateness must be a duration such as '5 seconds', not 5",
    ),
    "no duration as trigger": (
        "streams: {}\nqueries: {q: {sql: x y, sink: {format: noop}, checkpoint: c}}\ntrigger: now",
        "line 3: trigger must be a duration such as '5 seconds' or 'available now', not 'now'",
    ),
    "a trigger too long": (
        "streams: {}\nqueries: {q: {sql: x y, sink: {format: noop}, checkpoint: c}}\ntrigger: 30000000 days",
        "line 3: trigger must be at most 26687997 days, not '30000000 days'",
    ),
    "a probe sequence that is no list": (
        "streams: {}\nqueries:\n  q: {sql: x, sink: {format: noop}, checkpoint: c, plan: {a: b}}",
        "line 3: queries.q.plan.a must be a list of streams, not 'b'",
    ),
    "no sink": (
        "streams: {}\nqueries:\n  q:\n    sql: SELECT 1\n    checkpoint: c",
        "line 3: queries.q needs the key 'sink'",
    ),
    "a sink below a file": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: csv, path: job.yaml/out}}",
        "cannot write to {directory}/job.yaml/out: {directory}/job.yaml is a file",
    ),
    "a sink of files without a path": (
        "streams: {}\nqueries:\n  q:\n    sql: x\n    checkpoint: c\n    sink: {format: csv}",
        "line 6: queries.q.sink has no path; give the directory that the files go to",
    ),
    "a sink that cannot be written": (
        "streams: {}\nqueries:\n  q:\n    sql: x\n    checkpoint: c\n    sink:\n      format: csv\n      path: /proc/x",
        "line 8: cannot write to /proc/x (",
    ),
    "a checkpoint that cannot be written": (
        "streams: {}\nqueries:\n  q:\n    sql: x\n    sink: {format: csv, path: p}\n    checkpoint: /proc/x/y",
        "line 6: cannot write to /proc/x/y (",
    ),
    "two queries with one checkpoint": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: noop}}\n"
        "  r: {sql: x, checkpoint: c, sink: {format: noop}}",
        "line 4: queries 'q' and 'r' have the same checkpoint {directory}/c; give each its own",
    ),
    "one checkpoint in two spellings": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: noop}}\n"
        "  r: {sql: x, checkpoint: x/../c/, sink: {format: noop}}",
        "line 4: queries 'q' and 'r' have the same checkpoint {directory}/x/../c; give each its own",
    ),
    "one checkpoint on another file system": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: 'hdfs://h/a/c', sink: {format: noop}}\n"
        "  r: {sql: x, checkpoint: 'hdfs://h/a/b/../c/', sink: {format: noop}}",
        "line 4: queries 'q' and 'r' have the same checkpoint hdfs://h/a/b/../c/; give each its own",
    ),
    "two queries with one output directory": (
        "streams: {}\nqueries:\n  q: {sql: x, checkpoint: c, sink: {format: parquet, path: results}}\n"
        "  r:\n    sql: x\n    checkpoint: d\n    sink: {format: Parquet, path: ./x/../results}",
        "line 7: queries 'q' and 'r' write files to the same path {directory}/x/../results, where Spark would "
        "skip batches of one query whose numbers the other has used; give each its own path",
    ),
}


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_mistake_is_reported_with_its_line_before_spark_starts(case: str, command: str, tmp_path: Path) -> None:
    content, message = WRONG_FILES[case]
    file = str(tmp_path / "job.yaml") if content is None else write_job(tmp_path, content)
    result = braid(command, file)
    assert result.exit_code == 2, result.output
    assert message.format(file=file, directory=tmp_path) in result.output
    assert "Traceback" not in result.output


def test_a_directory_without_state_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`braid state` reports it before Spark starts."""
    monkeypatch.chdir(tmp_path)
    for path in (".", str(tmp_path), f"file:{tmp_path}"):
        result = braid("state", path)
        assert result.exit_code == 2
        assert f"{tmp_path} is not the checkpoint of a query" in result.output


def test_a_checkpoint_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c?1#2" / "state").mkdir(parents=True)
    assert checkpoint_at("c?1#2") == f"{tmp_path}/c?1#2"
    assert checkpoint_at("hdfs://host/c?1#2") == "hdfs://host/c?1#2"


def test_queries_may_have_similar_paths_and_share_a_delta_table(tmp_path: Path) -> None:
    """Paths have no fragment, so `out#1` and `out#2` differ. Several queries may write to one Delta table."""
    sinks = [{"format": "delta", "path": "table"}] * 2 + [{"format": "csv", "path": f"out#{end}"} for end in "12"]
    queries = {f"q{n}": {"sql": "x", "checkpoint": f"c?{n}", "sink": sink} for n, sink in enumerate(sinks)}
    assert len(load(Path(write_job(tmp_path, {"streams": {}, "queries": queries}))).queries) == len(sinks)


@pytest.mark.parametrize("number", ["0123456", "1.10", "1:30", "1_000", "0x1F", "1e3", "+7", "-0.0", "007"])
def test_numbers_reach_spark_as_the_file_spells_them(number: str, tmp_path: Path) -> None:
    """YAML reads most of these as other numbers; a password or a version must not change."""
    content = (
        f"streams: {{a: {{format: json, options: {{password: {number}, other: &same {number}, again: *same}}}}}}\n"
        "queries: {q: {sql: x, sink: {format: noop, options: {truncate: No, width: %s}}, checkpoint: c}}\n"
        f"spark: {{spark.some.version: {number}}}"
    )
    loaded = load(Path(write_job(tmp_path, content % number)))
    assert loaded.streams[0].options == {"password": number, "other": number, "again": number}
    assert loaded.queries[0].sink.options == {"truncate": "false", "width": number}
    assert loaded.spark == {"spark.some.version": number}


def test_a_plan_may_name_access_paths(tmp_path: Path) -> None:
    query = "{sql: x y, sink: {format: noop}, checkpoint: c, plan: {a: [{b: key}, c], b: [a, c]}}"
    job = load(Path(write_job(tmp_path, f"streams: {{}}\nqueries:\n  q: {query}\n")))
    assert job.queries[0].plan == {"a": [{"b": "key"}, "c"], "b": ["a", "c"]}
