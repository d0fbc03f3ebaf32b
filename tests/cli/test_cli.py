"""The command line as a whole."""

import json

from typer.testing import CliRunner

from braid.cli import app


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


def test_an_unknown_command_is_wrong_input() -> None:
    assert CliRunner().invoke(app, ["rum"]).exit_code == 2
