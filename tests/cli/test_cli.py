"""The command line as a whole."""

import json
import logging
import signal

import pytest
from typer.testing import CliRunner

from braid.cli import app
from braid.cli.commands import plain_interrupts


def test_version() -> None:
    assert CliRunner().invoke(app, ["version"]).output.strip() == "0.1.0"
    told = json.loads(CliRunner().invoke(app, ["version", "--json"]).output)
    assert told["braid"] == "0.1.0"
    assert told["pyspark"].startswith("4.")


def test_help_names_every_command() -> None:
    told = CliRunner().invoke(app, ["--help"])
    assert told.exit_code == 0
    commands = ("demo", "run", "check", "explain", "plan", "state", "bench", "experiments", "version")
    for command in commands:
        assert command in told.output
        helped = CliRunner().invoke(app, [command, "--help"])
        assert helped.exit_code == 0
        assert "--json" in helped.output


def test_an_empty_query_is_called_empty() -> None:
    told = CliRunner().invoke(app, ["explain", ""])
    assert told.exit_code == 2
    assert "the query is empty" in told.output


def test_an_unknown_command_is_wrong_input() -> None:
    assert CliRunner().invoke(app, ["rum"]).exit_code == 2


def test_ctrl_c_means_the_same_after_spark_has_started(caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGINT)
    with plain_interrupts():
        signal.signal(signal.SIGINT, lambda *_: None)  # As PySpark does.
    assert signal.getsignal(signal.SIGINT) is before
    logging.error("KeyboardInterrupt while sending command.")  # As Py4J does.
    logging.error("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]


def test_ctrl_c_waits_until_spark_has_started() -> None:
    started = False
    with pytest.raises(KeyboardInterrupt), plain_interrupts():
        signal.raise_signal(signal.SIGINT)
        started = True
    assert started
