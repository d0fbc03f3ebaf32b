"""The command `braid` as a whole: version, help, exit codes and signals."""

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
    versions = json.loads(CliRunner().invoke(app, ["version", "--json"]).output)
    assert versions["braid"] == "0.1.0"
    assert versions["pyspark"].startswith("4.")


def test_help_names_every_command() -> None:
    help_of_all = CliRunner().invoke(app, ["--help"])
    assert help_of_all.exit_code == 0
    commands = ("demo", "run", "check", "explain", "plan", "state", "rescale", "bench", "experiments", "version")
    for command in commands:
        assert command in help_of_all.output
        help_of_one = CliRunner().invoke(app, [command, "--help"])
        assert help_of_one.exit_code == 0
        assert "--json" in help_of_one.output


def test_an_empty_query_is_wrong_input() -> None:
    result = CliRunner().invoke(app, ["explain", ""])
    assert result.exit_code == 2
    assert "the query is empty" in result.output


def test_an_unknown_command_is_wrong_input() -> None:
    assert CliRunner().invoke(app, ["rum"]).exit_code == 2


def test_ctrl_c_while_modules_are_loaded_prints_nothing(tmp_path: Path) -> None:
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
def restored_signals() -> Iterator[None]:
    """Restore the signal handlers after the test."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_starting_spark_keeps_the_handler_of_ctrl_c_and_hides_logs_of_py4j(caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGINT)
    with starting_spark():
        signal.signal(signal.SIGINT, lambda *_: None)  # As PySpark does.
    assert signal.getsignal(signal.SIGINT) is before
    logging.error("KeyboardInterrupt while sending command.")  # As Py4J does.
    logging.error("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]


@pytest.mark.usefixtures("restored_signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_waits_until_spark_has_started(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    started = False
    with pytest.raises(typer.Exit) as ended, stoppable(), starting_spark():
        signal.raise_signal(number)
        started = True
    assert started
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.usefixtures("restored_signals")
def test_a_second_sigterm_does_not_interrupt_the_cleanup() -> None:
    cleaned_up = False
    with pytest.raises(typer.Exit) as ended, stoppable():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGTERM)
            cleaned_up = True
    signal.raise_signal(signal.SIGTERM)  # Nor does a third one interrupt the end of the process.
    assert cleaned_up
    assert ended.value.exit_code == 143


@pytest.mark.usefixtures("restored_signals")
def test_after_sigterm_a_failed_start_of_spark_is_no_failure() -> None:
    """A signal to the process group stops the Java process too."""
    with pytest.raises(typer.Exit) as ended, stoppable(), starting_spark():
        signal.raise_signal(signal.SIGTERM)
        raise RunError("Spark did not start: its Java has ended")
    assert ended.value.exit_code == 143


def test_the_handler_of_sigterm_is_restored_after_the_command() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
