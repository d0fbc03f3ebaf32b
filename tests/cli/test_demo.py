"""`braid demo`: its results are right, and it removes its files when it ends or is stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

import braid
from braid.adapt.history import RecordedChange
from braid.cli import app
from braid.cli.demo_feed import Feed
from braid.cli.demo_sites_view import SitesView
from braid.cli.demo_view import View
from braid.model.plan import Plan
from braid.runtime.sites.traffic import Traffic
from braid.testing import assert_same_rows, oracle
from braid.testing.processes import is_alive
from braid.workloads.airline import airline_statistics
from braid.workloads.airline_day import PER_MINUTE, QUERIES, Airline, Burst
from braid.workloads.airline_sites import SINKS, SITES, airline_network


def test_the_streams_have_the_rates_of_the_paper() -> None:
    assert PER_MINUTE == {"FLIGHTS": 300, "CHECKINS": 240, "BAGGAGE": 500, "WEATHER": 90, "SALES": 70}
    airline = Airline(burst=Burst("SALES", 3, 5, times=20))
    minutes = [airline.minute(number) for number in range(5)]
    assert {stream: table.num_rows for stream, table in minutes[2].items()} == PER_MINUTE
    assert minutes[4]["SALES"].num_rows == 20 * PER_MINUTE["SALES"]
    flights = pa.concat_tables([tables["FLIGHTS"] for tables in minutes])["NUM"].to_pylist()
    assert sorted(flights) == list(range(1_500))
    assert airline.minute(4)["BAGGAGE"].equals(minutes[4]["BAGGAGE"])


@pytest.mark.parametrize("name", QUERIES)
def test_the_queries_have_results_and_stay_right_while_adapting(name: str) -> None:
    minutes = [Airline(burst=Burst("SALES", 4, 8)).minute(number) for number in range(10)]
    streams = {stream: pa.concat_tables([tables[stream] for tables in minutes]) for stream in minutes[0]}
    expected = oracle(QUERIES[name], streams)
    assert expected.num_rows
    result = braid.run(QUERIES[name], streams, batch_rows=200, lateness="1 minute", adapt=True)
    assert_same_rows(result, expected)


def test_a_local_demo() -> None:
    result = CliRunner().invoke(app, ["demo", "--local", "--seconds", "20"])
    assert result.exit_code == 0, result.output
    assert result.output.count("yes") == len(QUERIES)


def test_a_local_demo_as_json() -> None:
    result = CliRunner().invoke(app, ["demo", "--local", "--seconds", "4", "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert [query["query"] for query in summary["queries"]] == list(QUERIES)
    assert all(query["equal"] for query in summary["queries"])
    assert summary["rows"] > 0


def test_a_terminal_of_24_lines_shows_the_newest_plan_change() -> None:
    before, after = {"SA": ["FL", "WR"], "WR": ["FL", "SA"]}, {"SA": ["WR", "FL"], "WR": ["SA", "FL"]}
    reason = "another order saves 34% of the work; a later stream is now cheaper to probe first for new rows of SA, WR"
    changes = [RecordedChange(number, 0.0, reason, before, after, 0.34, 0.3) for number in range(3)]
    airline = Airline(burst=Burst("SALES", 0, 2))
    running: list[Any] = [SimpleNamespace(name=name, query=_FakeQuery(name, changes)) for name in QUERIES]
    view = View(airline)
    view.note_changes(49, running[-1:])
    console = Console(width=80, height=24)
    with console.capture() as captured:
        console.print(view.panel(50, 1, airline.minute(1), running))
    # Rich replaces the last line of a screen that is too long by three dots.
    seen = captured.get().splitlines()[: console.height - 1]
    assert any("changed its plan at 49 s" in line for line in seen)
    assert any("now SA, FL)" in line for line in seen)


class _FakeQuery:
    """The parts of a running query that the view reads."""

    def __init__(self, name: str, changes: list[RecordedChange]) -> None:
        self.plan = Plan.in_text_order(braid.parse(QUERIES[name]))
        self._changes = changes

    def history(self) -> list[RecordedChange]:
        return self._changes

    def progress(self) -> dict[str, dict[str, int]]:
        return {"total": {"rows_in": 30_000, "rows_out": 40_000}}


@pytest.mark.usefixtures("spark")
def test_a_demo_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["demo", "--seconds", "6"])
    assert result.exit_code == 0, result.output
    assert result.output.count("yes") == len(QUERIES)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("spark")
def test_a_demo_at_five_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["demo", "--sites", "--seconds", "4", "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert [query["query"] for query in summary["queries"]] == list(QUERIES)
    assert all(query["equal"] for query in summary["queries"])
    shipped = {query["query"]: query for query in summary["shipped"]}
    gate_agent = shipped["gate agent"]
    assert 0 < sum(gate_agent["measured"].values()) < sum(gate_agent["everything"].values())
    assert not list(tmp_path.iterdir())


def test_a_terminal_of_24_lines_shows_all_links(tmp_path: Path) -> None:
    airline, topology = Airline(burst=Burst("SALES", 0, 2)), airline_network()
    traffic = {str(link): Traffic(1_234_567, 34_567, 89) for link in topology.links}
    queries: list[Any] = []
    for name, text in QUERIES.items():
        deployment = braid.plan(text, airline_statistics(SITES), topology, sink=SINKS[name])
        queries.append(SimpleNamespace(name=name, explain=deployment.explain, traffic=lambda: traffic))
    feed = Feed(tmp_path, airline)
    feed.send()
    console = Console(width=80, height=24)
    with console.capture() as captured:
        console.print(SitesView(airline).panel(50, feed, queries, dict.fromkeys(QUERIES, 1_234_567)))
    seen = captured.get().splitlines()
    assert len(seen) <= console.height
    assert any("weather - office" in line and "3,703,701" in line for line in seen)
    assert any("FL ⋈ BG at belts" in line for line in seen)


def test_a_demo_at_five_sites_needs_spark() -> None:
    result = CliRunner().invoke(app, ["demo", "--sites", "--local"])
    assert result.exit_code == 1
    assert "leave out --sites or --local" in result.stderr


@pytest.mark.parametrize("more", [[], pytest.param(["--sites"], marks=pytest.mark.sweep)])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.sweep)]
)
def test_a_demo_that_is_stopped_leaves_nothing_behind(
    number: signal.Signals, code: int, more: list[str], tmp_path: Path
) -> None:
    """The signal goes to the whole process group with Spark's Java, as from a terminal and from many supervisors."""
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "braid", "demo", "--forever", *more],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    while not list(tmp_path.glob("braid-demo-*/checkpoints/gate agent/offsets/0")):
        assert process.poll() is None, (tmp_path / "output").read_text()
        time.sleep(0.1)
    os.killpg(process.pid, number)
    assert process.wait() == code, (tmp_path / "output").read_text()
    assert "Traceback" not in (tmp_path / "output").read_text()
    while is_alive(process.pid):
        time.sleep(0.1)
    assert not list(tmp_path.glob("braid-*"))
