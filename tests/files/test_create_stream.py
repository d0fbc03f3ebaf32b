"""CREATE STREAM statements in job files."""

from pathlib import Path

import pytest

from braid.errors import FileError
from braid.files.job import load

QUERIES = """
queries:
  all: {sql: 'SELECT * FROM bids [NOW]', sink: {format: json, path: results}, checkpoint: state}
"""

STATEMENTS = """streams: |
  -- as it stands in a program for Flink
  CREATE TABLE bids (
    auction BIGINT NOT NULL, `the price` DECIMAL(9, 2),
    tags ARRAY<STRUCT<a: INT, b: STRING>>, ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
  ) WITH ('connector' = 'filesystem', 'path' = 'bids', 'format' = 'json', 'maxFilesPerTrigger' = '1');
  CREATE STREAM auctions (id INT, `at` TIMESTAMP_LTZ(6), WATERMARK FOR `at` AS `at`)
  USING csv OPTIONS (header 'true', rate = '50') LOCATION 'auctions';
"""


def job_file(directory: Path, streams: str) -> Path:
    file = directory / "job.yaml"
    file.write_text(streams + QUERIES)
    return file


def test_statements_say_what_a_mapping_says(tmp_path: Path) -> None:
    bids, auctions = load(job_file(tmp_path, STATEMENTS)).streams
    assert (bids.name, bids.format, bids.time, bids.lateness, bids.rate) == ("bids", "json", "ts", "5 SECOND", None)
    assert bids.options == {"path": str(tmp_path / "bids"), "maxFilesPerTrigger": "1"}
    assert [column for column, _ in bids.columns] == [
        "`auction` BIGINT NOT NULL",
        "`the price` DECIMAL(9, 2)",
        "`tags` ARRAY<STRUCT<a: INT, b: STRING>>",
        "`ts` TIMESTAMP",
    ]
    assert [location.line for _, location in bids.columns] == [4, 4, 5, 5]
    assert (auctions.name, auctions.time, auctions.lateness, auctions.rate) == ("auctions", "at", "0 seconds", 50.0)
    assert (auctions.format, auctions.schema) == ("csv", "`id` INT, `at` TIMESTAMP")
    assert auctions.options == {"header": "true", "path": str(tmp_path / "auctions")}


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE STREAM s (ts TIMESTAMP) WITH ('format' = 'json')", "stream 's' has no WATERMARK"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts)", "stream 's' has no format"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS x - INTERVAL 1 DAY)", "behind its own column"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' CATS)", "'5 CATS' is no length of time"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts)", "has one WATERMARK"),
        ("CREATE STREAM s (ts AS now(), WATERMARK FOR ts AS ts)", "columns that are computed are not declared"),
        ("CREATE STREAM s (id INT, PRIMARY KEY (id))", "remove PRIMARY KEY"),
        ("CREATE STREAM s (id, ts TIMESTAMP)", "column 'id' has no type"),
        (
            "CREATE STREAM s (id INT, WATERMARK FOR ts AS ts)",
            "stream 's' has no column 'ts', which its WATERMARK names",
        ),
        ("CREATE STREAM s (a ROW<x INT>, ts TIMESTAMP, WATERMARK FOR ts AS ts)", "'a' is a ROW of Flink; write STRUCT"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) PARTITIONED BY (x)", "only WITH or USING"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '0.0000001' SECOND)", "no length of time"),
        ("CREATE VIEW s AS SELECT 1", "STREAM or TABLE is missing here"),
        ("CREATE STREAM s (ts TIMESTAMP", r"\) is missing here \(at the end\)"),
        (
            "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka')",
            r"the connector 'kafka' of Flink; name a source of Spark .* WITH \('format' = 'kafka', ..\)",
        ),
        (
            "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH ('format' = 'x', 'rate' = 'high')",
            "the rate of stream 's' must be a number, not 'high'",
        ),
    ],
)
def test_wrong_statements_are_refused_with_their_line(tmp_path: Path, statement: str, problem: str) -> None:
    with pytest.raises(FileError, match=f"line 3: .*{problem}"):
        load(job_file(tmp_path, f"streams: |\n\n  {statement}\n"))


@pytest.mark.parametrize(
    ("interval", "lateness"),
    [("'0.001' SECOND", "0.001 SECOND"), ("0.5 MINUTES", "0.5 MINUTES"), ("'3' DAY", "3 DAY")],
)
def test_the_length_of_a_watermark_can_have_a_decimal_point(tmp_path: Path, interval: str, lateness: str) -> None:
    """Flink's documentation has `INTERVAL '0.001' SECOND` for streams whose times only grow."""
    statement = (
        f"CREATE STREAM s (`Ts` TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL {interval}) WITH ('format' = 'json')"
    )
    (stream,) = load(job_file(tmp_path, f"streams: |\n\n  {statement}\n")).streams
    assert stream.lateness == lateness


def test_the_word_row_may_stand_in_comments_and_names(tmp_path: Path) -> None:
    statement = "CREATE STREAM s (x STRUCT<`row (a)`: INT>, ts TIMESTAMP COMMENT 'a ROW (x)', WATERMARK FOR ts AS ts)"
    (stream,) = load(job_file(tmp_path, f"streams: |\n  {statement} WITH ('format' = 'json')\n")).streams
    assert "`row (a)`" in str(stream.schema)


def test_two_streams_of_one_name(tmp_path: Path) -> None:
    one = "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH ('format' = 'json');"
    with pytest.raises(FileError, match="line 3: two streams are called 's'"):
        load(job_file(tmp_path, f"streams: |\n  {one}\n  {one}\n"))
