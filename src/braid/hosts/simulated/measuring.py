"""What planners want to know of streams, measured on the streams themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from braid.adapt.observation import Observation
from braid.engine.segment import Segment
from braid.hosts.simulated.feeding import arrivals_of, batches_of, moments
from braid.hosts.simulated.travelling import Measurements
from braid.model.duration import UNITS
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.statistics import Statistics, Subject
from braid.model.window import FOREVER
from braid.planning.assumed import assumed_statistics
from braid.planning.cost.figures import Expected
from braid.runtime.routing import Router
from braid.runtime.shard import Shard, ShardSettings
from braid.runtime.totals import Totals

RowsByStream = Mapping[str, pa.RecordBatch]
"""All rows of each stream, by name."""


def measured_statistics(query: Query, rows: RowsByStream, batch_rows: int | None = None) -> Statistics:
    """Rates and selectivities over the whole time, and the sizes of rows as they travel in batches of this size.

    Each stream that a plan may ship is made once, and so are the joins. A stream too short to have a rate gets one row
    a second, and conditions that nothing was compared by are taken to hold always: a plan may be bad for that, never
    wrong.
    """
    measurements = Measurements(query, lambda: arrivals_of(query, rows, batch_rows))
    if any(source.window.counts_rows for source in query.sources):
        known = _by_joining_all(query, rows)
    else:
        known = _by_counting(query, rows, measurements)
    return replace(known, sizes=measurements.sizes)


def _by_counting(query: Query, rows: RowsByStream, measurements: Measurements) -> Statistics:
    """Statistics by which each join has as many rows as it was made with."""
    assumed = assumed_statistics(query)
    times = moments(query, rows)
    seconds = (max(times) - min(times)) / UNITS["second"] if times else 0.0
    rates, populations, passing = dict(assumed.rates), dict[str, float](), dict[Subject, float]()
    for source in query.sources:
        count, passed = rows[source.declared.name].num_rows, measurements.streams[source.alias].rows
        if seconds:
            rates[source.alias] = count / seconds
        if source.window.lifetime == FOREVER:
            populations[source.alias] = max(passed / 2, 1.0)  # The mean over the whole time.
        selections = query.graph.selections_of(source.alias)
        if selections and count:
            # Only all conditions on a stream together are measured: the first one stands for them.
            passing[str(selections[0])] = passed / count
    alone = replace(assumed, rates=rates, populations=populations, selectivities={**assumed.selectivities, **passing})
    if not seconds:
        return alone
    independent = Expected.of(query, alone)
    shares: dict[Subject, float] = {}
    for together, made in measurements.joins.items():
        rate = independent.rate(sum(1 << query.aliases.index(alias) for alias in together))
        shares[together] = min(1.0, made.rows / seconds / rate) if rate else 0.0
    # The figure of a pair is that of all conditions between its streams.
    others: dict[Subject, float] = {
        str(predicate): 1.0 for predicate in query.predicates if predicate.sources not in shares
    }
    return replace(alone, selectivities={**others, **passing, **shares})


def _by_joining_all(query: Query, rows: RowsByStream) -> Statistics:
    """Statistics as a query at one site measures them: windows that count rows are joined there only."""
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
    # Planners take the selections on a stream into account themselves.
    received = {alias: total.received_rate for alias, total in totals.streams.items()}
    for alias in query.aliases:
        selections, stream = query.graph.selections_of(alias), seen.streams.get(alias)
        if selections and stream is not None and stream.timed:
            selectivities[str(selections[0])] = stream.entered / stream.timed
    return replace(
        measured,
        rates={**assumed.rates, **{alias: rate for alias, rate in received.items() if rate is not None}},
        populations={**assumed.populations, **measured.populations},
        selectivities={**selectivities, **measured.selectivities},
    )
