"""Streams batch by batch, and what planners want to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from braid.adapt.observation import Observation
from braid.engine.input.lifetime import event_times
from braid.engine.segment import Segment
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.window import FOREVER
from braid.planning.assumed import assumed_statistics
from braid.runtime.routing import Router
from braid.runtime.shard import Shard, ShardSettings
from braid.runtime.totals import Totals

BATCHES = 50
"""How many batches each stream comes in, unless the caller says how many rows a batch has."""


def measured_statistics(query: Query, rows: Mapping[str, pa.RecordBatch]) -> Statistics:
    """Rates, sizes, populations and selectivities, by joining all of it at one place first.

    A stream too short to have a rate gets one row a second, and conditions that nothing was compared by are taken to
    hold always: a plan may be bad for that, never wrong.
    """
    shard = Shard(query, Plan.in_text_order(query), ShardSettings())
    totals = Totals(query, Router(()))
    seen = Observation({})
    for batch in batches_of(query, rows, None):
        segments = [Segment(name, part, newest=newest) for name, (part, newest) in batch.items()]
        _, report = shard.step(segments)
        totals.add([report])
        seen = Observation.merged([seen, report.observation])
    measured, assumed = totals.statistics(), assumed_statistics(query)
    selectivities = dict(assumed.selectivities)
    for alias in query.aliases:
        selections, stream = query.graph.selections_of(alias), seen.streams.get(alias)
        if selections and stream is not None and stream.timed:
            # Only all conditions on a stream together are measured: the first one stands for them.
            selectivities[str(selections[0])] = stream.entered / stream.timed
    return replace(
        measured,
        rates={**assumed.rates, **measured.rates},
        populations={**assumed.populations, **measured.populations},
        selectivities={**selectivities, **measured.selectivities},
    )


def batches_of(
    query: Query, rows: Mapping[str, pa.RecordBatch], batch_rows: int | None
) -> Iterator[dict[str, tuple[pa.RecordBatch, int]]]:
    """The streams batch by batch, each with its newest event time."""
    times = {source.declared.name: source.declared.time for source in query.inputs}
    sizes = {name: batch_rows or max(1, -(-whole.num_rows // BATCHES)) for name, whole in rows.items()}
    steps = max((-(-whole.num_rows // sizes[name]) for name, whole in rows.items()), default=0)
    for step in range(steps):
        batch = {}
        for name, whole in rows.items():
            part = whole.slice(step * sizes[name], sizes[name])
            newest = pc.max(part.column(times[name]))
            moment = int(event_times(pa.array([newest]))[0]) if newest.is_valid else -FOREVER
            batch[name] = (part, moment)
        yield batch
