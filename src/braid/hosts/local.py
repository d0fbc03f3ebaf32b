"""The local host: a query over Arrow tables in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa

from braid.engine.grouping import group
from braid.engine.hashing import FULL_HASH
from braid.engine.segment import Segment
from braid.engine.site import Counts, Site
from braid.errors import BraidError, PlanError, QueryError, StreamError, did_you_mean
from braid.hosts.arrival import Arrival, Lateness, steps
from braid.hosts.layout import give_back
from braid.language import bind, parse
from braid.language.grouping import EVENT_TIME
from braid.model.expression import Column
from braid.model.plan import Plan, Written
from braid.model.program import SiteProgram
from braid.model.query import Query
from braid.model.stream import Stream
from braid.planning.lower import lower

if TYPE_CHECKING:
    from braid.adapt.controller import Policy

logger = logging.getLogger(__name__)

Setting = TypeVar("Setting")
Data: TypeAlias = "pa.Table | Iterable[pa.RecordBatch]"


def run(
    query: str | Query,
    streams: Mapping[str, Data],
    *,
    time: str | Mapping[str, str] = "ts",
    lateness: Lateness | Mapping[str, Lateness] = "0 seconds",
    plan: Plan | Written | None = None,
    switches: Mapping[int, Plan | Written] | None = None,
    strategy: str = "jisc",
    batch_rows: int | None = None,
    adapt: bool | Policy = False,
    hash_bits: int = FULL_HASH,
) -> pa.Table:
    """The result of a query over streams that are given whole, in order of arrival.

    `time` and `lateness` hold for all streams, or map by name. `plan` maps each head to the order in which it probes
    the others (by default the order of the text), or is a tree of tuples whose inner joins keep their combinations:
    `((("a", "b"), "c"), "d")`. `switches` gives another plan from the step of that number on, counted from 0, and
    `strategy` the way from one plan to the other. Plans change the work, never the result. `batch_rows` takes so many
    rows of each stream in each step, and a row that is later than its stream's lateness allows is dropped and
    counted; by default everything is there at once and nothing is late. With `adapt`, `plan` is only the first one:
    it changes between two steps when statistics say that another costs less. `hash_bits` cuts the hashes of keys,
    which only tests of collisions want.
    """
    if not isinstance(query, str | Query):
        raise QueryError(f"a query is text or what braid.parse returns, not {type(query).__name__}")
    if batch_rows is not None and (type(batch_rows) is not int or batch_rows < 1):
        raise BraidError(f"batch_rows={batch_rows!r} is no number of rows; give 1 or more, or None for all at once")
    if type(hash_bits) is not int or not 0 <= hash_bits <= FULL_HASH:
        raise BraidError(f"hash_bits={hash_bits!r} is no number of bits; give 0 to {FULL_HASH}")
    arrivals = Arrivals(streams, time, lateness)
    bound = bind(parse(query) if isinstance(query, str) else query, arrivals)
    event_time = None if bound.grouping is None else EVENT_TIME
    programs = {step: lower(_planned(bound, written, strategy)) for step, written in _switches(switches).items()}
    first = _planned(bound, plan, strategy)
    site = Site(lower(first), event_time=event_time, strategy=strategy, hash_bits=hash_bits)
    if adapt is not False and programs:
        raise PlanError("a plan changes by itself (adapt) or when it is told to (switches); give one of them")
    step = _adapting(site, first, adapt) if adapt is not False else site.step
    results: list[pa.RecordBatch] = []
    windows = [(source.declared.name, source.window) for source in bound.inputs]
    for number, segments in enumerate(steps(arrivals.read, batch_rows, windows)):
        if number in programs:
            _change(site, programs.pop(number), number)
        results += step(segments)
    results += site.finish()
    for number in programs:
        logger.warning("there were not enough rows for a step %d; the plan did not change there", number)
    _tell_dropped(site.counts())
    found = pa.Table.from_batches(results, site.schema)
    if bound.grouping is not None:
        return group(bound.grouping, found, EVENT_TIME)
    return _as_given(found, bound, arrivals)


def _change(site: Site, program: SiteProgram, step: int) -> None:
    if program == site.program:
        logger.warning("at step %d the query runs this plan already; there was nothing to change", step)
    else:
        site.change(program)


def _as_given(result: pa.Table, query: Query, arrivals: Arrivals) -> pa.Table:
    """A column that is selected as it is comes back in the layout it was given in."""
    for place, expression in enumerate(query.selected):
        if isinstance(expression, Column):
            stream = query.source(expression.source or "").declared.name
            given = arrivals.given(stream).field(expression.name).type
            column = give_back(result.column(place), given)
            if column.type != result.field(place).type:
                result = result.set_column(place, pa.field(result.field(place).name, column.type), column)
    return result


def _adapting(site: Site, plan: Plan, adapt: bool | Policy) -> Callable[[Iterable[Segment]], list[pa.RecordBatch]]:
    """The steps of a site that changes its plan by itself."""
    from braid.adapt.adaptation import Adaptation
    from braid.hosts.adapting import AdaptiveSite

    return AdaptiveSite(site, Adaptation(plan, adapt)).step


def _switches(switches: Mapping[int, Plan | Written] | None) -> Mapping[int, Plan | Written]:
    if not isinstance(switches, Mapping | None):
        raise PlanError(f"switches maps steps to plans; {type(switches).__name__} does not")
    for number in switches or {}:
        if type(number) is not int or number < 0:
            raise PlanError(f"plans change at steps counted from 0, not at {number!r}")
    return switches or {}


def _planned(query: Query, written: Plan | Written | None, strategy: str) -> Plan:
    """The plan that is meant; what it keeps is no matter to a strategy that keeps nothing."""
    plan = Plan.of(query, written)
    return plan.without_kept() if strategy == "cacq" else plan


class Arrivals(Mapping[str, Stream]):
    """Streams by name, as binding asks for them; those it does not ask for are not looked at."""

    def __init__(
        self,
        data: Mapping[str, Data],
        time: str | Mapping[str, str],
        lateness: Lateness | Mapping[str, Lateness],
    ) -> None:
        if not isinstance(data, Mapping):
            raise StreamError(f"streams maps names to Arrow tables; {type(data).__name__} does not")
        for setting in (time, lateness):
            for name in setting if isinstance(setting, Mapping) else ():
                if name not in data:
                    raise StreamError(f"there is no stream '{name}' to have a setting; {did_you_mean(str(name), data)}")
        self._data = data
        self._time = time
        self._lateness = lateness
        self._read: dict[str, Arrival] = {}

    @property
    def read(self) -> list[Arrival]:
        return list(self._read.values())

    def given(self, name: str) -> pa.Schema:
        """The columns of a stream in the types they came in."""
        return self._read[name].given

    def __getitem__(self, name: str) -> Stream:
        if name not in self._read:
            no_lateness: Lateness = "0 seconds"
            time, lateness = _setting(self._time, name, "ts"), _setting(self._lateness, name, no_lateness)
            self._read[name] = Arrival(name, self._data[name], time, lateness)
        return self._read[name].stream

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def _setting(given: Setting | Mapping[str, Setting], name: str, default: Setting) -> Setting:
    return given.get(name, default) if isinstance(given, Mapping) else given


def _tell_dropped(counts: Counts) -> None:
    for alias, stream in counts.streams.items():
        if stream.late:
            logger.warning("%d of %d rows of '%s' came too late and were dropped", stream.late, stream.received, alias)
        if stream.untimed:
            logger.warning("%d of %d rows of '%s' have no event time", stream.untimed, stream.received, alias)
