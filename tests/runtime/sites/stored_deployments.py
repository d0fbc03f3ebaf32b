"""Writes the stored deployment of this release: `python -m tests.runtime.sites.stored_deployments`.

It is the document of a query over two sites whose plan is about to change.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import braid
from braid.channels.batch import Batch
from braid.channels.memory import MemoryChannels
from braid.engine.segment import Segment
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import Registry
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.runtime.sites.earlier_formats import FORMAT

DEPLOYMENTS = Path(__file__).with_name("deployments")
TRIANGLE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
KNOWN = Statistics(rates={"a": 10, "b": 12}, selectivities={"a.k = b.k": 0.001})
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "n": pa.int64()})
PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"


def announced() -> dict[str, Any]:
    """The deployment as this release announces it."""
    channels = MemoryChannels()
    registry = Registry(TRIANGLE, channels)
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    deployed = registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon", planner="at_sink", statistics=KNOWN))
    for outlet in (outlet for spec in deployed.intakes.values() for outlet in spec.work.outlets):
        channel = channels.open(outlet.channel)
        for number in range(3):
            moment = number * 40_000_000
            segment = Segment("any", pa.RecordBatch.from_pydict({"any": [number]}), newest=moment)
            channel.publish(Batch.behind(channel.last(), outlet.channel, number, (segment,), moment))
        for subscriber in channel.released():
            channel.release(subscriber, 1)
    statistics = replace(KNOWN, sites=deployed.origins)
    plan = braid.plan(deployed.query, statistics, TRIANGLE, sink="nice", planner="at_sink")
    registry.begin_change("pairs", plan, "a test", 0.0)
    return registry.deployment("pairs").to_json()


if __name__ == "__main__":
    DEPLOYMENTS.joinpath(f"format-{FORMAT}.json").write_text(json.dumps(announced(), indent=1) + "\n")
