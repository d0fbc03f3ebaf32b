"""Which derived streams can serve a query, and which conditions remain to be checked on them.

A derived stream serves a set of streams of a query if it joins the same streams with the same declarations, has no
condition that the query does not imply, has windows at least as long, and carries every column that the query needs of
them. All other conditions of the query are checked on the rows of the derived stream, at its site. Shorter windows are
applied there too: the start of each row in a combination is known, and so is its end. The end of a row in a window that
counts rows is not known after a join, so such windows must be the same. If the owner of the derived stream allows it, a
filter on one of its inputs may be weakened to let through the rows that the query needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from braid.model.advertisement import Advertisement, Flow
from braid.model.expressions.expression import Call, Column, Expression, columns_of, map_columns
from braid.model.graph import JoinGraph
from braid.model.needed_columns import columns_needed_outside
from braid.model.predicate import Predicate
from braid.model.query import Query, Source
from braid.model.window import Window
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.reuse.implication import implied


@dataclass(frozen=True)
class Match:
    """An advertisement that serves some streams of a query.

    `names` has pairs of aliases: of each stream in the advertisement and in the query. `remaining` are the conditions
    of the query that must still be checked, and `narrowed` the windows of the query that are shorter than those of the
    derived stream. `weakened` are the filters of the advertisement that must let more rows through, with its own
    aliases. `flows` are the streams shipped for the derived stream, with the aliases of the query.
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
        """The streams of the query of which weakened filters must let more rows through."""
        names = dict(self.names)
        return frozenset(names[stream] for predicate in self.weakened for stream in predicate.sources)


def matches(
    query: Query,
    advertisement: Advertisement,
    deadline: Deadline = NO_DEADLINE,
    served: Callable[[frozenset[str]], bool] = lambda streams: False,
) -> Iterator[Match]:
    """Every way in which a derived stream can serve the query, except for sets of streams that are `served` already."""
    naming = _Naming(query, advertisement, deadline)
    for names in naming.ways({}):
        if not served(frozenset(names.values())):
            match = naming.match(names)
            if _carries(advertisement, match, query):
                yield match


class _Naming:
    """Assigns the aliases of a query to the streams of an advertisement: one to each stream, and none twice.

    Streams get their aliases one after the other. A condition of the advertisement is checked as soon as all its
    streams have aliases. If the query does not imply it, and it may not be weakened, the search stops there.
    """

    def __init__(self, query: Query, advertisement: Advertisement, deadline: Deadline) -> None:
        self._query, self._advertisement, self._deadline = query, advertisement, deadline
        self._asked = [predicate.expression for predicate in query.predicates]
        self._sources = advertisement.query.sources
        self._candidates = [[ours.alias for ours in query.sources if _serves(theirs, ours)] for theirs in self._sources]
        positions = {alias: position for position, alias in enumerate(advertisement.query.aliases)}
        # The conditions that can be checked once the stream at each position has its alias.
        self._conditions: list[list[_Condition]] = [[] for _ in positions]
        for predicate in advertisement.query.predicates:
            read = tuple(predicate.sources)
            last = max((positions[alias] for alias in read), default=0)
            self._conditions[last].append(_Condition(predicate, read))

    def ways(self, names: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        """Every way to complete an assignment in which the first streams have aliases."""
        self._deadline.check()
        position = len(names)
        if position == len(self._sources):
            yield names
            return
        for alias in self._candidates[position]:
            if alias not in names.values():
                longer = {**names, self._sources[position].alias: alias}
                conditions = self._conditions[position]
                if all(self._may_weaken(condition) or self._implied(condition, longer) for condition in conditions):
                    yield from self.ways(longer)

    def _may_weaken(self, condition: _Condition) -> bool:
        """Whether a condition may be weakened for the query: a filter on one input, if its owner allows that."""
        return self._advertisement.may_weaken and len(condition.read) == 1

    def _implied(self, condition: _Condition, names: Mapping[str, str]) -> bool:
        """Whether the query implies a condition whose streams have these aliases."""
        key = tuple(names[alias] for alias in condition.read)
        if key not in condition.implied:
            renamed = _renamed(condition, names)
            condition.implied[key] = _follows(self._query, self._query.graph, renamed, self._asked)
        return condition.implied[key]

    def match(self, names: Mapping[str, str]) -> Match:
        """The match with these aliases."""
        query = self._query
        conditions = [condition for group in self._conditions for condition in group]
        implied_conditions = [condition for condition in conditions if self._implied(condition, names)]
        weakened = tuple(condition.predicate for condition in conditions if condition not in implied_conditions)
        checked = [_renamed(condition, names) for condition in implied_conditions]
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
    """A condition of an advertisement, with the streams it reads.

    `implied` caches whether the query implies it, by the aliases of these streams in the query.
    """

    predicate: Predicate
    read: tuple[str, ...]
    implied: dict[tuple[str, ...], bool] = field(default_factory=dict)


def _serves(theirs: Source, ours: Source) -> bool:
    """Whether a stream of an advertisement can serve as one of the query: the same stream, in a window long enough."""
    if theirs.stream != ours.stream or not covers(theirs.window, ours.window):
        return False
    return theirs.declaration is None or ours.declaration is None or theirs.declaration == ours.declaration


def covers(theirs: Window, ours: Window) -> bool:
    """Whether a window always holds all rows that another one holds, and the end of each row is known after a join.

    >>> from braid.model.window import Range, Rows
    >>> covers(Range(10), Range(5)), covers(Range(5), Range(10)), covers(Rows(5), Rows(5)), covers(Rows(5), Rows(4))
    (True, False, True, False)
    """
    if theirs.lifetime is None or ours.lifetime is None:
        return theirs == ours
    return theirs.slide == ours.slide and theirs.lifetime >= ours.lifetime


def _carries(advertisement: Advertisement, match: Match, query: Query) -> bool:
    """Whether a derived stream has all columns that the query still needs of it."""
    if advertisement.columns is None:
        return True
    if not query.bound:
        return False  # Without declarations it is not known which columns a query needs.
    theirs = {ours: alias for alias, ours in match.names}
    needed = [*columns_needed_outside(query, match.streams)]
    for predicate in match.remaining:
        needed += columns_of(predicate.expression)
    return all(Column(theirs[column.source or ""], column.name) in advertisement.columns for column in needed)


def _renamed(condition: _Condition, names: Mapping[str, str]) -> Expression:
    """The condition with the aliases of the query."""

    def rename(column: Column) -> Column:
        return column if column.source is None else Column(names[column.source], column.name, column.span)

    expression = condition.predicate.expression
    same = all(names[alias] == alias for alias in condition.read)
    return expression if same else map_columns(expression, rename)


def _remaining(query: Query, streams: frozenset[str], checked: list[Expression]) -> tuple[Predicate, ...]:
    """The conditions of the query on some streams that do not follow from those checked already."""
    asked = [predicate for predicate in query.conditions_within(streams) if not implied(predicate.expression, checked)]
    if not asked:
        return ()
    order = tuple(alias for alias in query.aliases if alias in streams)
    graph = JoinGraph.of(order, map(Predicate, checked), query.schemas)
    return tuple(predicate for predicate in asked if not _follows(query, graph, predicate.expression, ()))


def _follows(query: Query, graph: JoinGraph, condition: Expression, premises: Iterable[Expression]) -> bool:
    """Whether the given conditions, or the equalities of a graph, imply this one."""
    if isinstance(condition, Call) and condition.function == "equal":
        left, right = condition.arguments
        if any(tied.implies(left, right, query.schemas) for tied in graph.classes):
            return True
    return implied(condition, premises)
