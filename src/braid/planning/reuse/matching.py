"""Which derived streams can serve a query, and what is left to check on them.

A derived stream serves a set of streams of a query if it joins the same streams, declared alike, asks nothing of them
that the query does not ask too, and remembers at least as long. Whatever the query asks beyond that is checked on its
rows where they are made (filters telescope: the weaker one first, at the join; the stronger one behind it), and so are
shorter windows: when each part of a row began is known, and with it when it ends. When a window that counts rows ends
is not known behind a join, so these must be the same. If its owner allows it, a filter on one of its inputs may be
weakened to let through what the query needs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from braid.model.advertisement import Advertisement, Flow
from braid.model.expression import Call, Column, Expression, map_columns
from braid.model.graph import JoinGraph
from braid.model.predicate import Predicate
from braid.model.query import Query, Source
from braid.model.window import FOREVER, Now, Range, Rows, Unbounded, Window
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.reuse.implication import implied


@dataclass(frozen=True)
class Match:
    """An advertisement that serves some streams of a query; `remaining` is what must still be checked.

    `names` has each of its streams by its alias there and in the query. `narrowed` are those windows of the query that
    are shorter than the ones of the derived stream. `weakened` are its filters that must let more through, by the names
    they have there, and `flows` what travels for it, by the names of the query.
    """

    advertisement: Advertisement
    names: tuple[tuple[str, str], ...]
    remaining: tuple[Predicate, ...]
    narrowed: tuple[tuple[str, Window], ...] = ()
    weakened: tuple[Predicate, ...] = ()
    flows: tuple[Flow, ...] = ()

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(ours for _, ours in self.names)

    @property
    def let_through(self) -> frozenset[str]:
        """The streams of the query of which more must be let through."""
        names = dict(self.names)
        return frozenset(names[stream] for predicate in self.weakened for stream in predicate.sources)


def matches(
    query: Query,
    advertisement: Advertisement,
    deadline: Deadline = NO_DEADLINE,
    served: Callable[[frozenset[str]], bool] = lambda streams: False,
) -> Iterator[Match]:
    """Every way in which a derived stream can serve the query, but for sets of streams that are `served` already."""
    for names in _Naming(query, advertisement, deadline).ways({}):
        if not served(frozenset(names.values())):
            match = _match(query, advertisement, names)
            if match is not None:
                yield match


class _Naming:
    """How the streams of an advertisement may be called in a query: each by one of its names, and no two by the same.

    They are named one after the other. A condition on several is looked at as soon as all of them have a name: if the
    query does not ask for it, it does not matter what the rest is called.
    """

    def __init__(self, query: Query, advertisement: Advertisement, deadline: Deadline) -> None:
        self._query, self._deadline = query, deadline
        self._given = [predicate.expression for predicate in query.predicates]
        self._sources = advertisement.query.sources
        self._candidates = [[ours.alias for ours in query.sources if _serves(theirs, ours)] for theirs in self._sources]
        order = advertisement.query.aliases
        self._conditions: list[list[tuple[Expression, tuple[str, ...]]]] = [[] for _ in order]
        for predicate in advertisement.query.predicates:
            read = tuple(sorted(predicate.sources, key=order.index))
            if len(read) > 1:
                self._conditions[order.index(read[-1])].append((predicate.expression, read))
        self._known: dict[tuple[Expression, tuple[str, ...]], bool] = {}

    def ways(self, names: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        """Every way to go on from where some streams have names."""
        self._deadline.check()
        place = len(names)
        if place == len(self._sources):
            yield names
            return
        for alias in self._candidates[place]:
            if alias not in names.values():
                longer = {**names, self._sources[place].alias: alias}
                if all(self._asked(*condition, longer) for condition in self._conditions[place]):
                    yield from self.ways(longer)

    def _asked(self, condition: Expression, read: tuple[str, ...], names: Mapping[str, str]) -> bool:
        """Whether the query asks for a condition on streams that are called like this."""
        key = condition, tuple(names[alias] for alias in read)
        if key not in self._known:
            query = self._query
            self._known[key] = _follows(query.graph, _renamed(condition, names), self._given, query.schemas)
        return self._known[key]


def _serves(theirs: Source, ours: Source) -> bool:
    """Whether a stream of a join can be one of the query: the same rows of the same times, for long enough."""
    declared = [source.declaration for source in (theirs, ours) if source.declaration is not None]
    same = theirs.stream == ours.stream and all(stream == declared[0] for stream in declared)
    return same and covers(theirs.window, ours.window)


def covers(theirs: Window, ours: Window) -> bool:
    """Whether a window holds, at all times, everything that another one holds, and for how long is known behind a join.

    >>> covers(Range(10), Range(5)), covers(Range(5), Range(10)), covers(Rows(5), Rows(5)), covers(Rows(5), Rows(4))
    (True, False, True, False)
    """
    if isinstance(theirs, Rows) or isinstance(ours, Rows):
        return theirs == ours
    return _slide(theirs) == _slide(ours) and _length(theirs) >= _length(ours)


def _slide(window: Window) -> int | None:
    return window.slide if isinstance(window, Range) else None


def _length(window: Range | Now | Unbounded) -> int:
    """For how long a window holds a row."""
    if isinstance(window, Now):
        return 1
    return window.length if isinstance(window, Range) else FOREVER


def _match(query: Query, advertisement: Advertisement, names: Mapping[str, str]) -> Match | None:
    streams = frozenset(names.values())
    asked = [predicate.expression for predicate in query.conditions_within(streams)]
    conditions: list[Expression] = []
    weakened: list[Predicate] = []
    for predicate in advertisement.query.predicates:
        condition = _renamed(predicate.expression, names)
        if _follows(query.graph, condition, asked, query.schemas):
            conditions.append(condition)
        elif advertisement.may_weaken and len(predicate.sources) == 1:
            weakened.append(predicate)
        else:
            return None
    offered = _graph(query, streams, conditions)
    remaining = tuple(
        Predicate(condition) for condition in asked if not _follows(offered, condition, conditions, query.schemas)
    )
    flows = tuple(
        Flow(frozenset(names[stream] for stream in flow.streams), flow.source, flow.target)
        for flow in advertisement.flows
    )
    narrowed = tuple(
        (names[theirs.alias], query.source(names[theirs.alias]).window)
        for theirs in advertisement.query.sources
        if theirs.window != query.source(names[theirs.alias]).window
    )
    return Match(advertisement, tuple(names.items()), remaining, narrowed, tuple(weakened), flows)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    def change(column: Column) -> Column:
        return column if column.source is None else replace(column, source=names[column.source])

    return map_columns(expression, change)


def _graph(query: Query, streams: frozenset[str], conditions: list[Expression]) -> JoinGraph:
    order = tuple(alias for alias in query.aliases if alias in streams)
    return JoinGraph.of(order, [Predicate(condition) for condition in conditions], query.schemas)


def _follows(
    graph: JoinGraph, condition: Expression, given: list[Expression], schemas: Mapping[str, pa.Schema]
) -> bool:
    """Whether the given conditions, with the equalities of their graph, imply this one."""
    if isinstance(condition, Call) and condition.function == "equal":
        left, right = condition.arguments
        if any(tied.implies(left, right, schemas) for tied in graph.classes):
            return True
    return implied(condition, given)
