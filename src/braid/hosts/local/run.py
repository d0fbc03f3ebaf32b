"""`braid.run`, the local host: a query over Arrow tables, in one shard in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from braid.adapt.observation import SAMPLING, StreamSeen
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.output.distinct import distinct
from braid.engine.output.groups import group
from braid.engine.output.ranks import ranked
from braid.engine.segment import Segment
from braid.engine.transition import strategy_named
from braid.errors import BraidError, PlanError, QueryError
from braid.hosts.local.streams import Data, LocalStreams
from braid.hosts.local.views import LocalViews
from braid.language import bind
from braid.language.default_window import with_default_window
from braid.language.reading import read
from braid.model.duration import Duration
from braid.model.expressions.expression import Column
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.runtime.arrival import steps
from braid.runtime.arrow_layout import give_back
from braid.runtime.shard import Shard, ShardSettings

if TYPE_CHECKING:
    from braid.adapt.controller import Policy
    from braid.hosts.local.controller import LocalController

logger = logging.getLogger(__name__)


def run(
    query: str | Query,
    streams: Mapping[str, Data],
    *,
    tables: Mapping[str, Data] | None = None,
    time: str | Mapping[str, str] = "ts",
    lateness: Duration | Mapping[str, Duration] = "0 seconds",
    window: Duration | None = None,
    plan: Plan | Written | None = None,
    switches: Mapping[int, Plan | Written] | None = None,
    strategy: str = "jisc",
    batch_rows: int | None = None,
    adapt: bool | Policy = False,
    hash_bits: int = FULL_HASH,
) -> pa.Table:
    """The result of a query over streams that are given completely, in order of arrival.

    `tables` are Arrow tables without event time that streams are joined with; their rows are there at all times.

    `time` is the event-time column and `lateness` how much older than the newest row before it a row may be. Both hold
    for all streams, or map the names of streams to values. Streams of a text without a window in brackets have a
    `[RANGE ..]` of the length `window`, if that is given.

    `batch_rows` is the number of rows of each stream in a step. A row that is later than the lateness of its stream
    allows is dropped and counted. By default all rows are there at once, and none is late.

    `plan` maps each head to the order in which it probes the other streams, by default the order of the text. Or it is
    a tree of tuples, `((("a", "b"), "c"), "d")`, whose inner joins keep their combinations. Or it is a list of parts of
    the keys with a plan for each, `[({"k": [1, 2]}, P1), ("rest", P2)]`. `switches` maps numbers of steps, counted from
    0, to the plans that hold from there on, and `strategy` names the transition strategy. With `adapt`, the plan
    changes between steps whenever statistics say that another one costs less. Plans change the work, never the result.

    `hash_bits` shortens the hashes of keys, for tests of collisions.
    """
    _check_arguments(query, batch_rows, hash_bits)
    local = LocalStreams(streams, time, lateness, tables)
    views = LocalViews(local.tables, local.original_schema)
    if window is not None:
        query = with_default_window(query if isinstance(query, str) else query.text, window, tables or ())
    bound = _bound(query, local, views)
    plan_for = strategy_named(strategy).plan
    changes = {step: plan_for(Plan.of(bound, written)) for step, written in _checked_switches(switches).items()}
    if adapt is not False and changes:
        raise PlanError("adapt and switches are both given; a plan changes by itself or at given steps, not both")
    first = plan_for(Plan.of(bound, plan))
    is_timed = bound.grouping is not None or bound.distinct or bound.ranking is not None
    event_time = EVENT_TIME_COLUMN if is_timed else None
    controller = None if adapt is False else _controller(first, adapt)
    sampling = SAMPLING * adapt if isinstance(adapt, bool) else adapt.sampling
    shard = Shard(bound, first, ShardSettings(event_time, strategy, hash_bits, sampling=sampling))
    inputs = (views.step(segments, bound) for segments in steps(local.read, batch_rows, list(views.windows(bound))))
    results, streams_seen = _run_steps(shard, inputs, changes, controller)
    _warn_of_dropped_rows({**views.seen, **streams_seen})
    return _finished(pa.Table.from_batches(results, shard.engine.schema), bound, views)


def _check_arguments(query: str | Query, batch_rows: int | None, hash_bits: int) -> None:
    if not isinstance(query, str | Query):
        raise QueryError(f"a query is text or what braid.parse returns, not {type(query).__name__}")
    if batch_rows is not None and (type(batch_rows) is not int or batch_rows < 1):
        raise BraidError(f"batch_rows must be a number of rows, 1 or more, or None for all at once, not {batch_rows!r}")
    if type(hash_bits) is not int or not 0 <= hash_bits <= FULL_HASH:
        raise BraidError(f"hash_bits must be a number of bits from 0 to {FULL_HASH}, not {hash_bits!r}")


def _checked_switches(switches: Mapping[int, Plan | Written] | None) -> Mapping[int, Plan | Written]:
    if not isinstance(switches, Mapping | None):
        raise PlanError(f"switches must map steps to plans, not {type(switches).__name__}")
    for step in switches or {}:
        if type(step) is not int or step < 0:
            raise PlanError(f"plans change at steps counted from 0, not at {step!r}")
    return switches or {}


def _bound(query: str | Query, local: LocalStreams, views: LocalViews) -> Query:
    """The query over the streams that are given. A query with views is read anew from its text, to define them."""
    if isinstance(query, str) or query.views:
        return read(query if isinstance(query, str) else query.text, local, views.define).query
    return bind(query, local)


def _run_steps(
    shard: Shard, inputs: Iterable[Sequence[Segment]], changes: Mapping[int, Plan], controller: LocalController | None
) -> tuple[list[pa.RecordBatch], dict[str, StreamSeen]]:
    """The results of all steps, and what the shard has counted of each stream. `changes` maps steps to new plans."""
    results: list[pa.RecordBatch] = []
    streams_seen: dict[str, StreamSeen] = {}
    coming_changes = dict(changes)
    for step, segments in enumerate(inputs):
        if step in coming_changes:
            _change(shard, coming_changes.pop(step), step)
        step_results, report = shard.step(segments)
        results += step_results
        for alias, seen in report.observation.streams.items():
            streams_seen[alias] = streams_seen.get(alias, StreamSeen()) + seen
        if controller is not None:
            shard.change(*controller.decide(report, step))
    results += shard.finish()
    for step in coming_changes:
        logger.warning("the streams ended before step %d; the plan did not change there", step)
    return results, streams_seen


def _change(shard: Shard, plan: Plan, step: int) -> None:
    if plan == shard.plan:
        logger.warning("at step %d the query runs this plan already; there was nothing to change", step)
    shard.change(plan)


def _controller(plan: Plan, adapt: bool | Policy) -> LocalController:
    # Imported here, because most runs do not adapt and need no planner.
    from braid.hosts.local.controller import LocalController

    return LocalController(plan, adapt)


def _finished(result: pa.Table, bound: Query, views: LocalViews) -> pa.Table:
    """What follows the steps, over all their results: groups, distinct rows, the layout of the input, and ranks."""
    if bound.grouping is not None:
        result = group(bound.grouping, result, EVENT_TIME_COLUMN)
    elif bound.distinct:
        result = distinct(result).select(range(result.num_columns - 1))
    if bound.grouping is None:
        result = _in_given_layout(result, bound, views)
    return result if bound.ranking is None else ranked(bound.ranking, result)


def _in_given_layout(result: pa.Table, query: Query, views: LocalViews) -> pa.Table:
    """The result with columns that are selected unchanged cast back to the layout they were given in."""
    for position, expression in enumerate(query.selected):
        if isinstance(expression, Column):
            stream = query.source(expression.source or "").declared.name
            layout = views.original_schema(stream).field(expression.name).type
            column = give_back(result.column(position), layout)
            if column.type != result.field(position).type:
                result = result.set_column(position, pa.field(result.field(position).name, column.type), column)
    return result


def _warn_of_dropped_rows(streams: Mapping[str, StreamSeen]) -> None:
    for alias, stream in streams.items():
        if stream.late:
            logger.warning("%d of %d rows of '%s' came too late and were dropped", stream.late, stream.received, alias)
        if stream.untimed:
            logger.warning("%d of %d rows of '%s' have no event time", stream.untimed, stream.received, alias)
