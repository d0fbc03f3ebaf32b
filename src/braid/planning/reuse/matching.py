"""Which derived streams can serve a query, and what is left to check on them.

A derived stream serves a set of streams of a query if it joins the same streams, declared alike, asks nothing of them
that the query does not ask too, and remembers at least as long. Whatever the query asks beyond that is checked on its
rows where they are made (filters telescope: the weaker one first, at the join; the stronger one behind it), and so are
shorter windows: when each part of a row began is known, and with it when it ends. When a window that counts rows ends
is not known behind a join, so these must be the same. If its owner allows it, a filter on one of its inputs may be
weakened to let through what the query needs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from braid.model.advertisement import Advertisement, Flow
from braid.model.expressions.expression import Call, Column, Expression, map_columns
from braid.model.graph import JoinGraph
from braid.model.predicate import Predicate
from braid.model.query import Query, Source
from braid.model.window import Window
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
    naming = _Naming(query, advertisement, deadline)
    for names in naming.ways({}):
        if not served(frozenset(names.values())):
            yield naming.match(names)


class _Naming:
    """How the streams of an advertisement may be called in a query: each by one of its names, and no two by the same.

    They are named one after the other. A condition is looked at as soon as all streams it is on have a name: if the
    query does not ask for it, and it may not be weakened, it does not matter what the rest is called.
    """

    def __init__(self, query: Query, advertisement: Advertisement, deadline: Deadline) -> None:
        self._query, self._advertisement, self._deadline = query, advertisement, deadline
        self._given = [predicate.expression for predicate in query.predicates]
        self._sources = advertisement.query.sources
        self._candidates = [[ours.alias for ours in query.sources if _serves(theirs, ours)] for theirs in self._sources]
        places = {alias: place for place, alias in enumerate(advertisement.query.aliases)}
        self._conditions: list[list[_Condition]] = [[] for _ in places]
        for predicate in advertisement.query.predicates:
            read = tuple(predicate.sources)
            self._conditions[max((places[alias] for alias in read), default=0)].append(_Condition(predicate, read))

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
                if all(self._weak(found) or self._asked(found, longer) for found in self._conditions[place]):
                    yield from self.ways(longer)

    def _weak(self, condition: _Condition) -> bool:
        """Whether a condition may let more through for the query: a filter on one input, if its owner allows it."""
        return self._advertisement.may_weaken and len(condition.read) == 1

    def _asked(self, condition: _Condition, names: Mapping[str, str]) -> bool:
        """Whether the query asks for a condition on streams that are called like this."""
        key = tuple(names[alias] for alias in condition.read)
        if key not in condition.asked:
            renamed = _renamed(condition, names)
            condition.asked[key] = _follows(self._query, self._query.graph, renamed, self._given)
        return condition.asked[key]

    def match(self, names: Mapping[str, str]) -> Match:
        """What it means for the query to use the derived stream under these names."""
        query = self._query
        found = [condition for conditions in self._conditions for condition in conditions]
        kept = [condition for condition in found if self._asked(condition, names)]
        weakened = tuple(condition.predicate for condition in found if condition not in kept)
        checked = [_renamed(condition, names) for condition in kept]
        flows = tuple(
            Flow(frozenset(names[stream] for stream in flow.streams), flow.source, flow.target)
            for flow in self._advertisement.flows
        )
        narrowed = tuple(
            (names[theirs.alias], query.source(names[theirs.alias]).window)
            for theirs in self._sources
            if theirs.window != query.source(names[theirs.alias]).window
        )
        remaining = _remaining(query, frozenset(names.values()), checked)
        return Match(self._advertisement, tuple(names.items()), remaining, narrowed, weakened, flows)


@dataclass(frozen=True, eq=False)
class _Condition:
    """A condition of an advertisement, and whether the query asks for it, by what the streams it reads are called."""

    predicate: Predicate
    read: tuple[str, ...]
    asked: dict[tuple[str, ...], bool] = field(default_factory=dict)


def _serves(theirs: Source, ours: Source) -> bool:
    """Whether a stream of a join can be one of the query: the same rows of the same times, for long enough."""
    if theirs.stream != ours.stream or not covers(theirs.window, ours.window):
        return False
    return theirs.declaration is None or ours.declaration is None or theirs.declaration == ours.declaration


def covers(theirs: Window, ours: Window) -> bool:
    """Whether a window holds, at all times, everything that another one holds, and for how long is known behind a join.

    >>> from braid.model.window import Range, Rows
    >>> covers(Range(10), Range(5)), covers(Range(5), Range(10)), covers(Rows(5), Rows(5)), covers(Rows(5), Rows(4))
    (True, False, True, False)
    """
    if theirs.counts_rows or ours.counts_rows:
        return theirs == ours
    return theirs.slide == ours.slide and theirs.lifetime >= ours.lifetime


def _renamed(condition: _Condition, names: Mapping[str, str]) -> Expression:
    def change(column: Column) -> Column:
        return column if column.source is None else Column(names[column.source], column.name, column.span)

    expression = condition.predicate.expression
    same = all(names[alias] == alias for alias in condition.read)
    return expression if same else map_columns(expression, change)


def _remaining(query: Query, streams: frozenset[str], checked: list[Expression]) -> tuple[Predicate, ...]:
    """What the query asks of some streams beyond what is checked of them already."""
    asked = [predicate for predicate in query.conditions_within(streams) if not implied(predicate.expression, checked)]
    if not asked:
        return ()
    order = tuple(alias for alias in query.aliases if alias in streams)
    graph = JoinGraph.of(order, map(Predicate, checked), query.schemas)
    return tuple(predicate for predicate in asked if not _follows(query, graph, predicate.expression, ()))


def _follows(query: Query, graph: JoinGraph, condition: Expression, given: Iterable[Expression]) -> bool:
    """Whether the given conditions, or the equalities of a graph, imply this one."""
    if isinstance(condition, Call) and condition.function == "equal":
        left, right = condition.arguments
        if any(tied.implies(left, right, query.schemas) for tied in graph.classes):
            return True
    return implied(condition, given)
