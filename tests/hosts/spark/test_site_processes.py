"""Sites as processes with a Spark of their own: whichever is killed, nothing is lost and nothing comes twice."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from braid.testing import assert_same_rows, oracle
from braid.testing.kafka_cluster import KafkaCluster
from braid.testing.nats_server import NatsServer
from braid.testing.stream_files import THREE_WAY_JOIN, write_streams
from tests.hosts.conftest import without_time, written
from tests.hosts.spark.conftest import SITES, drop, running, write_network


def check_killed(directory: Path, file: Path, seed: int, kills: int) -> None:
    """Kill sites after some of the results have come, each time another number of them; at the end drop the query."""
    choose = random.Random(seed)
    tables = write_streams(directory / "streams", rows=160, rows_per_file=20)
    expected = oracle(THREE_WAY_JOIN, tables)
    moments = sorted(choose.randrange(expected.num_rows) for _ in range(kills))
    with running(file, SITES.values()) as processes:
        for moment in moments:
            processes.wait_for_rows(directory / "results", moment)
            site = choose.choice(list(SITES.values()))
            processes.kill(site)
            processes.start(site)
        results = processes.wait_for_rows(directory / "results", expected.num_rows)
        drop(processes, file)
    assert_same_rows(results, expected)
    assert_same_rows(without_time(written(directory / "results")), expected)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10))
def test_sweep_of_killed_sites(seed: int, tmp_path: Path) -> None:
    check_killed(tmp_path, write_network(tmp_path), seed, kills=2)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(3))
def test_sweep_of_killed_sites_over_nats(seed: int, tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats") as server:
        file = write_network(tmp_path, channels={"kind": "nats", "url": server.url})
        check_killed(tmp_path, file, seed, kills=2)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(3))
def test_sweep_of_killed_sites_over_kafka(seed: int, tmp_path: Path) -> None:
    with KafkaCluster() as cluster:
        check_killed(tmp_path, write_network(tmp_path, channels=cluster.channels), seed, kills=2)


def test_a_site_runs_once_and_its_mistakes_are_told(tmp_path: Path) -> None:
    file = write_network(tmp_path)
    for arguments, message in (
        (["site", str(file), "--name", "rome"], "has no site 'rome'"),
        (["deploy", str(file), "--wait", "0"], "the streams a, b, c are not there: start site lyon"),
        (["network", "stop", str(file)], "'stop' is no command of braid network"),
    ):
        done = subprocess.run([sys.executable, "-m", "braid", *arguments], capture_output=True, text=True)
        assert done.returncode in (1, 2)
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_garbage_in_documents_stops_no_site(tmp_path: Path) -> None:
    """Also the document of the query itself is damaged for a while: it is not dropped, and nothing of it is removed."""
    tables = write_streams(tmp_path / "streams", rows=160, rows_per_file=20)
    expected = oracle(THREE_WAY_JOIN, tables)
    file = write_network(tmp_path)
    announced = tmp_path / "state" / "announced"
    with running(file, SITES.values()) as processes:
        for kind in ("deployment", "change", "stream", "figures", "results", "drop", "running"):
            for name, garbage in {"zzz": "not json", "joined=20=232": "{}"}.items():
                (announced / kind).mkdir(exist_ok=True)
                (announced / kind / f"{name}.json").write_text(garbage)
        processes.wait_for_rows(tmp_path / "results", 1)
        document = announced / "deployment" / "joined.json"
        whole = document.read_bytes()
        document.write_text("not json")
        while not all(f"{document} is damaged" in processes.log(site) for site in SITES.values()):
            processes.check()
            time.sleep(0.2)
        time.sleep(2.0)
        processes.check()
        document.write_bytes(whole)
        results = processes.wait_for_rows(tmp_path / "results", expected.num_rows)
        for site in SITES.values():
            log = processes.log(site)
            assert log.count(f"{announced}/deployment/zzz.json is damaged") == 1
            assert log.count(f"{document} is damaged") == 1
            assert "Traceback" not in log
        for path in announced.glob("*/*=20=232.json"):
            path.unlink()
        for path in announced.glob("*/zzz.json"):
            path.unlink()
        drop(processes, file)
    assert_same_rows(results, expected)
