"""A site that does not run is told, and so is one that a plan change waits for: once each."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

import braid
from braid.channels.batch import Batch
from braid.channels.memory import MemoryChannels
from braid.hosts.delays import PATIENCE_SECONDS, Delays
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import Registry
from braid.hosts.roll_call import ANSWER_SECONDS, RUNNING, SILENT_SECONDS
from braid.model.stream import Stream
from braid.planning.assumed import assumed_statistics

CITIES = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})
PAIRS = "SELECT a.k FROM a [RANGE 20 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
START = 1_000_000.0
"""A time in seconds since 1970."""


class Watcher:
    """A program that runs the site paris, and looks after a query."""

    def __init__(self, channels: MemoryChannels) -> None:
        self.registry = Registry(CITIES, channels)
        self._heard: list[str] = []
        self._delays = Delays(self.registry, self._heard.append)

    def watch(self, begin: float, end: float, sites: Sequence[str] = ("paris",)) -> list[str]:
        """What it warns of while it runs some sites, and looks again and again."""
        deployed = self.registry.deployment("pairs")
        time = begin
        while time < end:
            self.registry.roll_call.answer(sites, time)
            self._delays.look(deployed, time)
            time += 0.5
        heard, self._heard[:] = list(self._heard), []
        return heard


@pytest.fixture
def channels() -> MemoryChannels:
    return MemoryChannels()


@pytest.fixture
def deployed(channels: MemoryChannels) -> None:
    """A query with a part at paris and at lyon."""
    registry = Registry(CITIES, channels)
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    assert registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon")).sites == {"paris", "lyon"}


@pytest.mark.usefixtures("deployed")
def test_a_site_that_nobody_runs_is_told_once_and_again_if_it_goes(channels: MemoryChannels) -> None:
    watcher = Watcher(channels)
    assert watcher.watch(START, START + PATIENCE_SECONDS) == []
    told = watcher.watch(START + PATIENCE_SECONDS, START + 10 * PATIENCE_SECONDS)
    assert told == ["site 'lyon' does not run, so that query 'pairs' waits for it; start it"]
    later = START + 10 * PATIENCE_SECONDS
    channels.announce(RUNNING, "lyon", {"time": later})
    assert watcher.watch(later, later + SILENT_SECONDS + PATIENCE_SECONDS) == []
    assert watcher.watch(later + SILENT_SECONDS + PATIENCE_SECONDS, later + 1000) == told


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_a_site_that_answers_runs_whatever_its_clock_says(channels: MemoryChannels, skew: float) -> None:
    watcher, other = Watcher(channels), Registry(CITIES, channels).roll_call
    time = START
    while time < START + 200:
        other.answer(["lyon"], time + skew)
        assert watcher.watch(time, time + ANSWER_SECONDS) == []
        time += ANSWER_SECONDS


@pytest.mark.usefixtures("deployed")
def test_what_an_earlier_run_has_left_is_no_answer(channels: MemoryChannels) -> None:
    for left in ({"time": START - 3600}, {"time": "soon"}, {}):
        channels.announce(RUNNING, "lyon", left)
        assert Registry(CITIES, channels).roll_call.silent(["lyon", "paris"], START) == ("lyon", "paris")
    channels.announce(RUNNING, "lyon", {"time": START - 1})
    assert Registry(CITIES, channels).roll_call.silent(["lyon", "paris"], START) == ("paris",)


@pytest.mark.usefixtures("deployed")
def test_a_site_that_a_plan_change_waits_for_is_told(channels: MemoryChannels) -> None:
    watcher = Watcher(channels)
    deployed = watcher.registry.deployment("pairs")
    known = replace(assumed_statistics(deployed.query), sites=deployed.origins)
    at_nice = braid.plan(deployed.query, known, CITIES, sink="nice", planner="at_sink")
    watcher.registry.begin_change("pairs", at_nice, "a test", START)
    assert watcher.watch(START, START + PATIENCE_SECONDS, CITIES.names) == []
    (told,) = watcher.watch(START + PATIENCE_SECONDS, START + 1000, CITIES.names)
    assert told.startswith("the plan change of query 'pairs' is preparing, and waits for site 'nice'; start what does")


@pytest.mark.usefixtures("deployed")
def test_a_stream_that_brings_nothing_while_another_one_does_is_told_once(channels: MemoryChannels) -> None:
    """A pause of all streams is none of one of them."""
    watcher, both, time = Watcher(channels), ("paris", "lyon"), START
    outlets = {
        outlet.fragment: channels.open(outlet.channel)
        for spec in watcher.registry.deployment("pairs").intakes.values()
        for outlet in spec.work.outlets
    }

    def bring(aliases: str) -> list[str]:
        nonlocal time
        heard = []
        for _ in range(20):
            for alias in aliases:
                channel = outlets[alias]
                last = channel.last()
                number = 1 if last is None else last.number + 1
                channel.publish(Batch.behind(last, channel.name, number, (), number))
            heard += watcher.watch(time, time + 10, both)
            time += 10
        return heard

    assert bring("ab") == []
    assert bring("") == []
    (told,) = bring("a")
    assert told.startswith("stream 'b' brings no rows at site 'lyon' while other streams of query 'pairs' do")
    assert "idle_timeout" in told
    assert bring("ab") + bring("a") == []
