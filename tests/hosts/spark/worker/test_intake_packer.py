"""What an intake tells of a micro-batch, without Spark."""

import braid
from braid.channels.memory import MemoryChannels
from braid.engine.segment import Segment
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import Registry
from braid.hosts.spark.worker.intake_packer import IntakePacker
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.testing.stream_files import random_rows

TEXT = "SELECT a.n FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"


def test_an_intake_passes_rows_on_and_tells_how_long_it_has_worked() -> None:
    registry = Registry(braid.Topology.from_links([("paris", "lyon", 0.004)]), MemoryChannels())
    rows = random_rows(1)
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, rows.schema, "ts"))
    spec = registry.deploy(DeploymentRequest(TEXT, "pairs", "lyon")).intakes["paris"]
    packer = IntakePacker(spec.to_json(), "a", rows.column_names, {"a": -FOREVER})
    told = [row for batch in packer(rows.to_batches()) for row in batch.to_pylist()]
    segments = [Segment.from_bytes(row["payload"]) for row in told if row["payload"] is not None]
    (report,) = [ShardReport.from_json(row["report"]) for row in told if row["report"] is not None]
    assert sum(segment.rows.num_rows for segment in segments) == rows.num_rows
    assert report.seconds.total >= report.seconds.join > 0
