"""What the status of a network tells of its sites."""

import pyarrow as pa

import braid
from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.channels.memory import MemoryChannels
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.network_status import channel_statuses
from braid.hosts.registry import Registry
from braid.model.stream import Stream

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})
TEXT = "SELECT a.k FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"


def test_each_channel_has_the_load_of_the_site_that_publishes_it() -> None:
    channels = MemoryChannels()
    registry = Registry(braid.Topology.from_links([("paris", "lyon", 0.004)]), channels)
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    registry.deploy(DeploymentRequest(TEXT, "pairs", "lyon"))
    assert {status.load for status in channel_statuses(channels)} == {None}
    for generation, load in ((INTAKES, 0.25), (1, 0.5)):
        registry.figures.tell("pairs", SiteFigures("lyon", generation, {"b": 1.0}, reached=1, load=load))
    loads = {(status.site, status.load) for status in channel_statuses(channels)}
    assert loads == {("paris", None), ("lyon", 0.75)}
