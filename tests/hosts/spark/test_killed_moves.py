"""A plan moves between site processes under load while one of them is killed: nothing is lost, nothing comes twice.

The old plan joins `a` and `b` at paris, and the result with `c` at lyon, which gives the results and so coordinates the
change. The new plan joins all streams at nice.
"""

import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from braid.channels.kinds import open_channels
from braid.files.network import load_network
from braid.hosts.registry import Registry
from braid.runtime.migration.change import ChangeState, Phase, Verdict
from braid.testing import assert_same_rows, oracle
from braid.testing.kafka_cluster import KafkaCluster
from braid.testing.nats_server import NatsServer
from braid.testing.stream_files import THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import without_time, written
from tests.hosts.spark.conftest import SITES, Processes, drop, run_braid, running, streams_of_files, write_network

OLD, NEW, COORDINATOR = "paris", "nice", "lyon"

KNOWN = {"rates": {"a": 12, "b": 2, "c": 9}, "selectivities": {"a.k = b.k": 0.001, "b.k = c.k": 0.25}}
"""By these statistics, the plan that was asked for is the cheapest one. They need not be true."""

FILE_ROWS, FILE_SECONDS = 20, 5
"""A file of a stream has so many rows, which take so many seconds of event time."""

KEYS = 24
"""How many keys the rows have: with fewer, a plan that takes long to change has millions of results."""

PACE = 1.6
"""Seconds between two files of a stream."""

LOOK_SECONDS = 0.02
"""Seconds between two looks at how far the change is."""

RANDOM = [*(("directory", seed) for seed in range(8)), *(("kafka", seed) for seed in range(3))]
"""The channels and the seeds of random kills."""

Kill = tuple[Phase, str]
"""A site to be killed, and the phase of the change in which that happens."""


class Load:
    """Streams that get more rows all the time, until the load ends."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._seed = seed
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in SITES}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        for name in SITES:
            (directory / name).mkdir(parents=True)
        self._write()

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> dict[str, pa.Table]:
        """Bring no more rows; returns all that came."""
        self._ending.set()
        self._thread.join()
        return {name: pa.concat_tables(tables) for name, tables in self._tables.items()}

    def _run(self) -> None:
        while not self._ending.wait(PACE):
            self._write()

    def _write(self) -> None:
        for position, (name, tables) in enumerate(self._tables.items()):
            number = len(tables)
            table = _rows(number, seed=(self._seed * len(SITES) + position) * 100_000 + number)
            hidden = self._directory / name / f".{number:05d}"
            pq.write_table(table, hidden)
            os.utime(hidden, (1_000_000_000 + number,) * 2)  # Spark reads files in this order.
            hidden.rename(hidden.with_name(f"{number:05d}.parquet"))
            tables.append(table)


def _rows(number: int, seed: int) -> pa.Table:
    """The rows of one file of a stream: those of `random_rows` at another time, with other row numbers."""
    rows = random_rows(seed, FILE_ROWS, KEYS)
    shares = rows["ts"].cast(pa.int64()).to_numpy() / 60
    times = (number * FILE_SECONDS * 1_000_000 + shares * FILE_SECONDS).astype("int64")
    rows = rows.set_column(0, "ts", pa.array(times, rows.schema.field("ts").type))
    return rows.set_column(2, "n", pc.add(rows["n"], number * FILE_ROWS))


class Watch:
    """Looks at the change of the query from outside, by what its sites have announced."""

    def __init__(self, file: Path, processes: Processes) -> None:
        network = load_network(file)
        self._checkpoints = network.directory / "sites"
        self._processes = processes
        self.registry = Registry(network.topology, open_channels(network.channels, network.directory))

    @property
    def state(self) -> ChangeState:
        """What is known of the change. The test fails if there is none, or none any more."""
        (state,) = self.registry.changes.states("joined")
        return state

    def await_phase(self, phase: Phase) -> None:
        """Wait until the change is in a phase and its new site has begun; fail if it has passed that phase."""
        while self.state.phase is not phase or not list((self._checkpoints / NEW).glob("joined * #2")):
            self._processes.check()
            assert list(Phase).index(self.state.phase) <= list(Phase).index(phase)
            time.sleep(LOOK_SECONDS)

    def kill(self, phase: Phase, site: str) -> None:
        """Kill a site in a phase of the change, and start it again. The change is under way before and after."""
        self.await_phase(phase)
        self._processes.kill(site)
        assert self.state.phase is phase
        self._processes.start(site)

    def await_end(self) -> None:
        while not self.registry.changes.history("joined"):
            self._processes.check()
            time.sleep(LOOK_SECONDS)


def check_moved(directory: Path, file: Path, kills: Sequence[Kill], *, seed: int = 1, undo: bool = False) -> None:
    """Change the plan under load, and kill sites meanwhile; with `undo`, give the change up after that."""
    (directory / "known.yaml").write_text(yaml.safe_dump(KNOWN))
    load = Load(directory / "streams", seed)
    with running(file, SITES.values()) as processes, load:
        processes.wait_for_rows(directory / "results", 1)
        watch = Watch(file, processes)
        before = watch.registry.deployment("joined").current
        assert (before.sites.keys(), [*before.results]) == ({OLD, COORDINATOR}, [COORDINATOR])
        run_braid("replan", str(_replanned(file)), "--no-wait")
        assert watch.state.change.preparing == (NEW,)
        for phase, site in kills:
            watch.kill(phase, site)
        if undo:
            watch.registry.changes.say(watch.state.change, Verdict(go=False, reason="the test gives it up"))
        watch.await_end()
        expected = oracle(THREE_WAY_JOIN, load.end())
        results = processes.wait_for_rows(directory / "results", expected.num_rows)
        check_history(watch.registry, directory / "results", undo)
        drop(processes, file)
    assert_same_rows(results, expected)
    assert_same_rows(without_time(written(directory / "results")), expected)


def _replanned(file: Path) -> Path:
    content = yaml.safe_load(file.read_text())
    content["queries"]["joined"] |= {"planner": "at_sink", "sink": NEW}
    other = file.with_name("replanned.yaml")
    other.write_text(yaml.safe_dump(content))
    return other


def check_history(registry: Registry, results: Path, is_undone: bool) -> None:
    """The change is completed or undone, whole: either each plan has given its share of the results, or one all."""
    (move,) = registry.changes.history("joined")
    current = registry.deployment("joined").current
    if is_undone:
        assert (move.is_done, move.because, move.moment) == (False, "the test gives it up", None)
        assert current.number == 1
        return
    assert move.is_done
    assert [*current.results] == [NEW]
    times = written(results)["event_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    assert pc.min(times).as_py() < move.moment <= pc.max(times).as_py()


@contextmanager
def network_over(kind: str, directory: Path) -> Iterator[Path]:
    """The file of a network whose channels are of a kind."""
    streams: dict[str, Any] = streams_of_files(SITES, "1 second")
    for entry in streams.values():
        entry["options"] = {}  # A site that has been away takes all files that wait at once.
    if kind == "nats":
        with NatsServer(directory / "nats") as server:
            yield write_network(directory, streams=streams, channels={"kind": "nats", "url": server.url})
    elif kind == "kafka":
        with KafkaCluster() as cluster:
            yield write_network(directory, streams=streams, channels=cluster.channels)
    else:
        yield write_network(directory, streams=streams)


def test_a_plan_that_moves_under_kills_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    with network_over("directory", tmp_path) as file:
        check_moved(tmp_path, file, [(Phase.PREPARING, NEW), (Phase.SWITCHING, COORDINATOR)])


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["directory", "nats"])
@pytest.mark.parametrize("site", [OLD, NEW, COORDINATOR], ids=["old", "new", "coordinator"])
@pytest.mark.parametrize("phase", [Phase.PREPARING, Phase.SWITCHING])
def test_sweep_of_each_site_killed_before_and_after_go(phase: Phase, site: str, kind: str, tmp_path: Path) -> None:
    with network_over(kind, tmp_path) as file:
        check_moved(tmp_path, file, [(phase, site)])


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["directory", "nats"])
def test_sweep_of_a_change_that_is_given_up_under_kills(kind: str, tmp_path: Path) -> None:
    with network_over(kind, tmp_path) as file:
        check_moved(tmp_path, file, [(Phase.PREPARING, NEW)], undo=True)


@pytest.mark.sweep
@pytest.mark.parametrize("kind, seed", RANDOM)
def test_sweep_of_plans_that_move_under_kills(kind: str, seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    phases = sorted(choose.choices([Phase.PREPARING, Phase.SWITCHING], k=3), key=list(Phase).index)
    kills = [(phase, choose.choice(list(SITES.values()))) for phase in phases]
    with network_over(kind, tmp_path) as file:
        check_moved(tmp_path, file, kills, seed=seed)
