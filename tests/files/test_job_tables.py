"""Tables in job files."""

from pathlib import Path

import pytest

from braid.errors import FileError
from braid.files.job import load

JOB = """
streams:
  bids: {{format: json, path: bids, schema: {{ts: TIMESTAMP, item: INT}}}}
tables:
  items: {table}
queries:
  named:
    sql: SELECT b.item, i.name FROM bids [NOW] AS b JOIN items AS i ON i.id = b.item
    sink: {{format: json, path: results}}
    checkpoint: state
"""


def job_file(directory: Path, table: str) -> Path:
    file = directory / "job.yaml"
    file.write_text(JOB.format(table=table))
    return file


def test_tables_are_read(tmp_path: Path) -> None:
    file = job_file(tmp_path, "{path: items.csv, options: {header: true}, schema: 'id INT, name STRING'}")
    (table,) = load(file).tables
    assert (table.name, table.format, table.refresh) == ("items", "csv", False)
    assert table.options == {"header": "true", "path": str(tmp_path / "items.csv")}
    assert table.schema == "id INT, name STRING"
    (table,) = load(job_file(tmp_path, "{path: items, refresh: true}")).tables
    assert (table.format, table.refresh) == ("parquet", True)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("{path: items, time: ts}", "has no key 'time'"),
        ("{path: items, refresh: often}", "must be true or false, not 'often'"),
        ("5", "must be a mapping"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, table: str, problem: str) -> None:
    with pytest.raises(FileError, match=problem):
        load(job_file(tmp_path, table))


def test_a_stream_and_a_table_cannot_share_a_name(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("items: {table}", "bids: {table}").format(table="{path: x}"))
    with pytest.raises(FileError, match="'bids' is a stream and a table"):
        load(file)
