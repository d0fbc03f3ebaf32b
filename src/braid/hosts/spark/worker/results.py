"""Results of a deployment, from the channels that carry them to rows of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from braid.hosts.spark.worker.site_packer import open_channel
from braid.hosts.spark.worker.task_overhead import reduce_task_overhead
from braid.runtime.sites.site import results_from


class ResultReader:
    """Reads the batches that rows of the source of results refer to, as a function for `mapInArrow`.

    Results before the moment that comes with a batch belong to another plan. Columns are named by their position on the
    way, because two may have the same name.
    """

    def __init__(self, location: Mapping[str, Any], event_time: str) -> None:
        self._location = json.dumps(location)
        self._event_time = event_time

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("channel", "number", "since"))
            for channel, number, since in zip(*columns, strict=True):
                segments = () if number is None else open_channel(self._location, channel).read(number).segments
                for segment in segments:
                    rows = results_from(since, segment.rows, self._event_time)
                    yield rows.rename_columns([str(position) for position in range(rows.num_columns)])
        reduce_task_overhead()
