"""Results of a deployment, from the channels that carry them to rows of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from braid.hosts.spark.worker.site_packer import open_channel
from braid.hosts.spark.worker.task_overhead import reduce_task_overhead


class ResultReader:
    """Reads the batches that rows of the channel source refer to, as a function for `mapInArrow`.

    Columns are named by their position on the way, because two may have the same name.
    """

    def __init__(self, place: Mapping[str, Any]) -> None:
        self._place = json.dumps(place)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            channels, numbers = (batch.column(name).to_pylist() for name in ("channel", "number"))
            for channel, number in zip(channels, numbers, strict=True):
                segments = () if number is None else open_channel(self._place, channel).read(number).segments
                for segment in segments:
                    positions = range(segment.rows.num_columns)
                    yield segment.rows.rename_columns([str(position) for position in positions])
        reduce_task_overhead()
