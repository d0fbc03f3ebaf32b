"""What an intake passes on: rows in time, filtered for its own query and whole for later ones; how long it works."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

import braid
from braid.channels.memory import MemoryChannels
from braid.engine.segment import Segment
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import Registry
from braid.hosts.spark.worker.intake_packer import IntakePacker
from braid.language import parse
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.sites.deployed import Deployed
from braid.testing.stream_files import random_rows

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "n": pa.int64(), "unread": pa.int64()})
TEXT = "SELECT a.n FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k AND a.n > 2"
START = datetime(2024, 1, 1, tzinfo=UTC)


def passed_on(watermark: int) -> dict[str, list[dict[str, int]]]:
    """The rows that each channel gets, by the fragment that publishes them."""
    streams = {name: Stream(name, SCHEMA, "ts") for name in "ab"}
    origins = {"a": "paris", "b": "lyon"}
    deployed = Deployed.of(
        "q", TEXT, streams.values(), parse(TEXT, streams), origins, event_time="event_time", shards=1, shared=True
    )
    spec = deployed.intakes["paris"]
    times = [START + timedelta(seconds=second) for second in range(6)]
    rows = pa.RecordBatch.from_pydict(
        {"ts": times, "k": [1] * 6, "n": list(range(6)), "unread": [0] * 6}, schema=SCHEMA
    ).select(["ts", "k", "n"])
    packer = IntakePacker(spec.to_json(), "a", ["ts", "k", "n"], dict.fromkeys(spec.work.fragments, watermark))
    passed: dict[str, list[dict[str, int]]] = {outlet.fragment: [] for outlet in spec.work.outlets}
    for batch in packer(iter([rows])):
        for row in batch.to_pylist():
            if row["payload"] is not None:
                segment = Segment.from_bytes(row["payload"])
                passed[spec.work.outlets[row["outlet"]].fragment] += segment.rows.drop_columns("ts").to_pylist()
    return passed


def test_a_shared_stream_is_passed_on_filtered_and_whole() -> None:
    passed = passed_on(-FOREVER)
    assert passed["a"] == [{"k": 1, "n": n} for n in (3, 4, 5)]
    assert passed["a, all rows"] == [{"k": 1, "n": n} for n in range(6)]


def test_the_same_rows_are_late_on_both_channels() -> None:
    passed = passed_on(int(START.timestamp() * 1_000_000) + 4_000_000)
    assert passed["a"] == passed["a, all rows"] == [{"k": 1, "n": n} for n in (4, 5)]


def test_an_intake_passes_rows_on_and_tells_how_long_it_has_worked() -> None:
    text = "SELECT a.n FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
    registry = Registry(braid.Topology.from_links([("paris", "lyon", 0.004)]), MemoryChannels())
    rows = random_rows(1)
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, rows.schema, "ts"))
    spec = registry.deploy(DeploymentRequest(text, "pairs", "lyon")).intakes["paris"]
    packer = IntakePacker(spec.to_json(), "a", rows.column_names, {"a": -FOREVER})
    told = [row for batch in packer(rows.to_batches()) for row in batch.to_pylist()]
    segments = [Segment.from_bytes(row["payload"]) for row in told if row["payload"] is not None]
    (report,) = [ShardReport.from_json(row["report"]) for row in told if row["report"] is not None]
    assert sum(segment.rows.num_rows for segment in segments) == rows.num_rows
    assert report.seconds.total >= report.seconds.join > 0
