"""The command line."""

from typer.testing import CliRunner

import braid
from braid.cli import app
from braid.cli.demo import QUERY, airline
from braid.testing import assert_same_rows, oracle


def test_the_demo_shows_query_plan_and_results() -> None:
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    for shown in ("FROM flights", "new rows of f", "62,400 rows in"):
        assert shown in result.output


def test_the_demo_is_right() -> None:
    streams = airline(minutes=3)
    assert_same_rows(braid.run(QUERY, streams, batch_rows=100, lateness="1 minute"), oracle(QUERY, streams))


def test_version() -> None:
    assert CliRunner().invoke(app, ["version"]).output.strip() == "0.1.0"
