"""`braid experiments`: list them, run one, and refuse unknown names."""

import json
from pathlib import Path

import pytest
from experiments import report
from experiments.__main__ import EXPERIMENTS
from typer.testing import CliRunner

import braid
from braid.cli import app


def test_the_list_names_every_experiment() -> None:
    result = CliRunner().invoke(app, ["experiments", "--list"])
    assert result.exit_code == 0, result.output
    for name in EXPERIMENTS:
        assert f"{name}: " in result.output


def test_an_experiment_prints_its_progress_and_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    result = CliRunner().invoke(app, ["experiments", "dcape_distribution"])
    assert result.exit_code == 0, result.output
    assert "1 of 1: dcape_distribution" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"dcape_distribution.md", "dcape_distribution.png"}


def test_json_has_a_line_for_each_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    result = CliRunner().invoke(app, ["experiments", "dcape_distribution", "--json"])
    assert result.exit_code == 0, result.output
    line = json.loads(result.stdout)
    assert line["experiment"] == "dcape_distribution"
    assert Path(line["page"]).exists()
    listed = CliRunner().invoke(app, ["experiments", "--list", "--json"])
    assert json.loads(listed.stdout) == EXPERIMENTS


def test_an_unknown_name_is_refused() -> None:
    result = CliRunner().invoke(app, ["experiments", "figure_99"])
    assert result.exit_code == 2
    assert "there is no experiment 'figure_99'" in result.output


def test_the_installed_package_has_no_experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(braid, "__file__", str(tmp_path / "site-packages" / "braid" / "__init__.py"))
    result = CliRunner().invoke(app, ["experiments", "--list"])
    assert result.exit_code == 2
    assert "run this in a checkout" in result.output
