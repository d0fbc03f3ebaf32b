"""What workers do to rescale a checkpoint: cut the state of old shards, and write the state of new ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from braid.hosts.spark.worker.operator import ShardOperator

if TYPE_CHECKING:
    import pandas as pd

    from braid.runtime.resharding import Resharder

CUT_DDL = "shard int, payload binary"
CUT = pa.schema({"shard": pa.int32(), "payload": pa.binary()})
"""A segment for a new shard, by the label of the shard."""


class Cutter:
    """Cuts entries of the state for new shards, as a function for `mapInArrow`.

    `before` and `after` are the JSON of a `QuerySpec`, `manifests` those of the old shards, by label, `table` the
    JSON of their table of spread keys. Spark pickles
    this object for the workers, so it holds only texts.
    """

    def __init__(self, before: str, after: str, manifests: Mapping[int, str], table: str) -> None:
        self._before = before
        self._after = after
        self._manifests = manifests
        self._table = table

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        labels = self._labels
        for batch in batches:
            for entry in batch.to_pylist():
                key = (entry["source"], entry["number"])
                for shard, segment in self._resharder.cut(labels[entry["shard"]], key, entry["payload"]):
                    cut = {"shard": self._new_labels[shard], "payload": segment.to_bytes()}
                    yield pa.RecordBatch.from_pylist([cut], CUT)

    @cached_property
    def _labels(self) -> dict[int, int]:
        """The old shards by their labels."""
        return {label: shard for shard, label in enumerate(json.loads(self._before)["labels"])}

    @cached_property
    def _new_labels(self) -> list[int]:
        return list(json.loads(self._after)["labels"])

    @cached_property
    def _resharder(self) -> Resharder:
        from braid.runtime.manifest import Manifest
        from braid.runtime.query_spec import QuerySpec
        from braid.runtime.resharding import Resharder
        from braid.runtime.spread_table import SpreadTable

        manifests = {self._labels[label]: Manifest.from_json(text) for label, text in self._manifests.items()}
        return Resharder(
            QuerySpec.from_json(self._before),
            QuerySpec.from_json(self._after),
            manifests,
            SpreadTable.from_json(self._table),
        )


class FillOperator(ShardOperator):
    """Writes the state of new shards. A row without a payload only says that there is such a shard."""

    def __init__(self, spec: str, manifest: str) -> None:
        super().__init__(spec, "", None)
        self._manifest = manifest

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        import pandas as pd

        from braid.engine.segment import Segment
        from braid.hosts.spark.worker.spark_store import SparkStore
        from braid.runtime.manifest import Manifest
        from braid.runtime.query_spec import QuerySpec
        from braid.runtime.resharding import fill

        payloads = (payload for frame in rows for payload in frame["payload"])
        segments = (Segment.from_bytes(bytes(payload)) for payload in payloads if payload is not None)
        query = QuerySpec.from_json(self._spec).narrow
        fill(SparkStore(self._state), query, Manifest.from_json(self._manifest), segments)
        yield pd.DataFrame({"shard": [int(key[0])]})
