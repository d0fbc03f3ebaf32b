"""`braid deploy`: what it says of sites that do not run."""

import time
from pathlib import Path

from tests.cli.conftest import braid, registry, write_network


def silent_sites(message: str) -> list[str]:
    return [line.split()[1] for line in message.splitlines() if "does not run" in line]


def test_sites_that_do_not_run_are_named_and_the_query_is_deployed(tmp_path: Path) -> None:
    file = write_network(tmp_path)
    registry(file).roll_call.answer(["paris"], time.time())
    done = braid("deploy", file, "--wait", 0)
    assert done.exit_code == 0
    assert silent_sites(done.stderr) == ["lyon", "nice"]
    assert f"start it with braid site {file} --name nice" in done.stderr
    assert list(registry(file).deployments()) == ["pairs"]


def test_the_status_of_a_network_is_not_truncated_when_it_is_piped(tmp_path: Path) -> None:
    file = write_network(tmp_path)
    assert braid("deploy", file, "--wait", 0).exit_code == 0
    piped = braid("network", "status", file).stdout
    for shown in ("watermark", "a at paris", "b at lyon", "#1: results of a+b at nice"):
        assert shown in piped


def test_sites_that_run_are_not_named(tmp_path: Path) -> None:
    file = write_network(tmp_path)
    registry(file).roll_call.answer(["paris", "lyon", "nice"], time.time())
    done = braid("deploy", file, "--wait", 60)
    assert done.exit_code == 0
    assert silent_sites(done.stderr) == []
    assert "pairs" in done.stdout
