"""The command line as a whole."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from braid.cli import app
from braid.cli.stopping import starting_spark, stoppable
from braid.errors import RunError


def test_version() -> None:
    assert CliRunner().invoke(app, ["version"]).output.strip() == "0.1.0"
    assert CliRunner().invoke(app, ["--version"]).output.strip() == "0.1.0"
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


def test_ctrl_c_while_modules_are_loaded_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", "braid", "version"],
        env={**os.environ, "PYTHONPATH": path},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.fixture
def no_more_signals() -> Iterator[None]:
    """What a test does to signals ends with it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, meaning in before.items():
        signal.signal(number, meaning)


def test_ctrl_c_means_the_same_after_spark_has_started(caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGINT)
    with starting_spark():
        signal.signal(signal.SIGINT, lambda *_: None)  # As PySpark does.
    assert signal.getsignal(signal.SIGINT) is before
    logging.error("KeyboardInterrupt while sending command.")  # As Py4J does.
    logging.error("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]


@pytest.mark.usefixtures("no_more_signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_stops_us_waits_until_spark_has_started(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    started = False
    with pytest.raises(typer.Exit) as ended, stoppable(), starting_spark():
        signal.raise_signal(number)
        started = True
    assert started
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.usefixtures("no_more_signals")
def test_a_second_sigterm_does_not_interrupt_the_tidying_up() -> None:
    tidied = False
    with pytest.raises(typer.Exit) as ended, stoppable():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGTERM)
            tidied = True
    signal.raise_signal(signal.SIGTERM)  # Nor what is left to do when the process ends.
    assert tidied
    assert ended.value.exit_code == 143


@pytest.mark.usefixtures("no_more_signals")
def test_a_java_that_was_stopped_with_us_is_no_failure() -> None:
    with pytest.raises(typer.Exit) as ended, stoppable(), starting_spark():
        signal.raise_signal(signal.SIGTERM)
        raise RunError("Spark did not start: its Java has ended")
    assert ended.value.exit_code == 143


def test_sigterm_means_what_it_did_when_the_command_has_ended() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
