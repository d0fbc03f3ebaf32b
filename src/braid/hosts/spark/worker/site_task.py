"""The work of a site's operator for one shard in one micro-batch: from packed rows to segments for channels."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pandas as pd

from braid.engine.segment import Segment
from braid.hosts.spark.shared.packed_rows import CONTROL, WATERMARKS
from braid.hosts.spark.worker.engine_cache import open_engine_cache
from braid.hosts.spark.worker.spark_store import MapState, SparkStore
from braid.runtime.messages import addressed_to
from braid.runtime.sites.node import NodeShard
from braid.runtime.sites.site import outgoing_segments, watermarks_of
from braid.runtime.sites.site_spec import SiteSpec

logger = logging.getLogger(__name__)


class SiteTask:
    """One shard of a site in one micro-batch.

    `spec` is the JSON of a `SiteSpec`, `directory` the query's directory on this host, `state` its map state in Spark.
    """

    def __init__(self, spec: str, directory: str, cache_limit: int | None, state: MapState) -> None:
        self._spec = SiteSpec.from_json(spec)
        self._store = SparkStore(state)
        self._engines = open_engine_cache(directory, cache_limit)

    def take(self, label: int, rows: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """What the shard called `label` publishes, and its report in a last row."""
        started = time.perf_counter()
        packed: list[tuple[int, bytes]] = []
        for frame in rows:
            packed += zip(map(int, frame["source"]), map(bytes, frame["payload"]), strict=True)
        name, _ = self._spec.shard_of[label]
        node = self._spec.nodes[name]
        shard = NodeShard(node, self._store, self._engines, time.perf_counter)
        segments = [Segment.from_bytes(payload) for source, payload in packed if source >= 0]
        messages = addressed_to(name, (payload for source, payload in packed if source == CONTROL))
        results, report = shard.step(segments, self._watermarks(name, packed), messages)
        for rejection in shard.shard.rejections:
            logger.warning("control message rejected: %s", rejection)
        for position, outlet in enumerate(self._spec.work.outlets):
            if outlet.fragment == name:
                for segment in outgoing_segments(node, outlet, results):
                    yield _frame(position, segment.to_bytes(), None)
        shard.shard.close()
        seconds = replace(report.seconds, store=self._store.seconds, total=time.perf_counter() - started)
        yield _frame(None, None, replace(report, shard=label, seconds=seconds).to_json())

    def _watermarks(self, node: str, packed: Iterable[tuple[int, bytes]]) -> dict[str, int]:
        """The watermarks of the arriving streams that a node reads, if anything has arrived."""
        announced = [payload for source, payload in packed if source == WATERMARKS]
        if not announced:
            return {}
        known = json.loads(announced[-1])
        channels = {channel: known.get(channel) for channel in self._spec.work.arriving}
        return watermarks_of(self._spec.work, self._spec.nodes[node].fragment, channels)


def _frame(outlet: int | None, payload: bytes | None, report: str | None) -> pd.DataFrame:
    """One row of the operator's output."""
    columns = {"outlet": pd.array([outlet], dtype="Int32"), "payload": [payload], "report": [report]}
    return pd.DataFrame(columns)
