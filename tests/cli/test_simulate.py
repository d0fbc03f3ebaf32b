"""`braid simulate`: queries of a network file in virtual time, and mistakes in such files."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from braid.testing import oracle
from tests.cli.conftest import braid

TEXT = "SELECT f.gate, b.tag FROM flights [RANGE 5 SECONDS] f, bags [RANGE 3 SECONDS] b WHERE f.num = b.flight"


def streams() -> dict[str, pa.Table]:
    times = [datetime(2024, 1, 1) + timedelta(milliseconds=100 * number) for number in range(200)]
    stamps = pa.array(times, pa.timestamp("us"))
    numbers = range(200)
    return {
        "flights": pa.table({"ts": stamps, "num": [n % 40 for n in numbers], "gate": [f"A{n % 9}" for n in numbers]}),
        "bags": pa.table({"ts": stamps, "flight": [n % 40 for n in numbers], "tag": list(numbers)}),
    }


def network_file(**changes: Any) -> dict[str, Any]:
    return {
        "topology": {
            "links": [
                {"source": "paris", "target": "lyon", "latency": 0.004},
                {"source": "lyon", "target": "nice", "latency": 0.006, "bandwidth": 1_000_000},
            ]
        },
        "streams": {
            "flights": {"site": "paris", "path": "flights.parquet"},
            "bags": {"site": "nice", "path": "bags.csv", "lateness": "1 second"},
        },
        "queries": {"gates": {"sql": TEXT, "sink": "paris"}},
    } | changes


def write(directory: Path, network: object) -> str:
    tables = streams()
    pq.write_table(tables["flights"], directory / "flights.parquet")
    pyarrow.csv.write_csv(tables["bags"], directory / "bags.csv")
    file = directory / "network.yaml"
    file.write_text(network if isinstance(network, str) else yaml.safe_dump(network, sort_keys=False))
    return str(file)


def test_the_queries_of_a_file_run_beside_shipping_everything(tmp_path: Path) -> None:
    plot = tmp_path / "links.png"
    result = braid("simulate", write(tmp_path, network_file()), "--plot", str(plot))
    assert result.exit_code == 0, result.output
    expected = oracle(TEXT, streams()).num_rows
    assert f"gates: {expected:,} results" in result.stdout
    assert "exact plan" in result.stdout
    assert "lyon - nice" in result.stdout
    assert "everything shipped" in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_has_what_crossed_each_link_and_crashes_change_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, network_file())
    without_crashes, with_crashes = (
        json.loads(braid("simulate", file, "--json", "--crash-rate", rate).stdout)["gates"] for rate in ("0", "0.1")
    )
    assert without_crashes["results"] == with_crashes["results"] == oracle(TEXT, streams()).num_rows
    assert set(without_crashes["links"]) == {"paris - lyon", "lyon - nice"}
    assert without_crashes["links"]["lyon - nice"]["rows"] > 0
    assert without_crashes["everything_shipped"]["lyon - nice"]["bytes"] > 0


def test_a_topology_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(network_file()["topology"]))
    result = braid("simulate", write(tmp_path, network_file(topology="links.yaml")), "--json")
    assert result.exit_code == 0, result.output


WITHOUT_PATH = {"sites": ["paris", "lyon", "nice"], "links": [{"source": "paris", "target": "lyon", "latency": 1.0}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"streams": {"flights": {"site": "rome", "path": "x"}}}, "line 12: the topology has no site 'rome'"),
        ({"topology": WITHOUT_PATH}, "line 1: no path leads from 'paris' to 'nice' and back"),
        ({"topology": "nowhere.yaml"}, "line 1: cannot read the topology file"),
        ({"queries": {"gates": {"sql": TEXT, "sink": "rome"}}}, "the topology has no site 'rome'"),
        ({"queries": {"gates": {"sql": "SELECT"}}}, "query 'gates': "),
        ({"queries": {"gates": {"sql": TEXT, "planner": "exakt"}}}, "there is no planner 'exakt'"),
        ({"queries": {}}, "there is no query to run"),
        ({"brokers": {}}, "the file has no key 'brokers'"),
        ({"streams": {"flights": {"site": "paris"}}}, "stream 'flights' has no path, and only files can be simulated"),
        ({"streams": {"flights": {"site": "paris", "path": "gone.parquet"}}}, "stream 'flights': cannot read"),
        (
            {"streams": {"flights": {"site": "paris", "path": "flights.parquet", "lateness": "soon"}}},
            "streams.flights.lateness must be a duration such as '5 seconds', not 'soon'",
        ),
    ],
)
def test_mistakes_in_a_network_file_are_reported_with_their_line(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    result = braid("simulate", write(tmp_path, network_file(**changes)))
    assert result.exit_code == 2
    assert f"{tmp_path / 'network.yaml'}, line" in result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_stream_at_two_sites_is_refused(tmp_path: Path) -> None:
    text = yaml.safe_dump(network_file(), sort_keys=False)
    twice = text.replace("streams:\n", "streams:\n  bags: {site: lyon, path: bags.csv}\n")
    result = braid("simulate", write(tmp_path, twice))
    assert result.exit_code == 2
    assert "two keys 'bags'" in result.stderr
