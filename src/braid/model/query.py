"""A continuous query: its streams and their windows, the conditions that join them, and the columns of the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from braid.errors import ModelError, QueryError
from braid.model.checks import check, check_each
from braid.model.existence import Existence as Existence
from braid.model.expressions.expression import Column, Expression, columns_of
from braid.model.fixed_join import FixedJoin as FixedJoin
from braid.model.fixed_join import JoinKind as JoinKind
from braid.model.fixed_join import lags
from braid.model.graph import JoinGraph
from braid.model.grouping import Grouping
from braid.model.output import Output as Output
from braid.model.output import Star as Star
from braid.model.predicate import Predicate
from braid.model.projection import Projection
from braid.model.ranking import Ranking
from braid.model.source import Source as Source
from braid.model.source import two_streams_called as two_streams_called


@dataclass(frozen=True)
class Query:
    """A query as parsed; `braid.language.bind` returns the same query with every name resolved.

    `sources` and `predicates` are its inner joins: all that plans are about. Everything else comes after them, in this
    order: `fixed_joins`, `filters` (conditions on what these give), `existences`, `projection` (columns that the host
    computes), `grouping` and `ranking`. If there is a projection, the outputs are its inputs; else if there is a
    grouping or a ranking, they are its inputs; what a ranking of groups reads are the outputs of the grouping. If the
    query is `distinct`, of results with the same columns and the same event time one is kept.
    `views` are the streams that the text itself makes of others.
    """

    text: str
    sources: tuple[Source, ...]
    outputs: tuple[Output | Star, ...]
    predicates: tuple[Predicate, ...] = ()
    grouping: Grouping | None = None
    existences: tuple[Existence, ...] = ()
    fixed_joins: tuple[FixedJoin, ...] = ()
    filters: tuple[Predicate, ...] = ()
    projection: Projection | None = None
    distinct: bool = False
    views: tuple[str, ...] = ()
    ranking: Ranking | None = None

    def __post_init__(self) -> None:
        check(self.text, str, "the text of a query")
        check_each(self.sources, Source, "the streams of a query")
        check_each(self.outputs, Output | Star, "the columns of a query")
        check_each(self.predicates, Predicate, "the conditions of a query")
        check(self.grouping, Grouping | None, "the groups of a query")
        check_each(self.existences, Existence, "the existence tests of a query")
        check_each(self.fixed_joins, FixedJoin, "the fixed joins of a query")
        check_each(self.filters, Predicate, "the conditions after the fixed joins of a query")
        check(self.projection, Projection | None, "the projection of a query")
        check(self.distinct, bool, "whether the results of a query are distinct")
        check(self.ranking, Ranking | None, "the ranking of a query")
        if not self.sources:
            raise QueryError("a query needs at least one stream", self.text)
        if not self.outputs and self.grouping is None:
            raise ModelError("a query selects at least one column; Star(None) is all of them")
        seen: set[str] = set()
        for source in self.inputs:
            if source.alias in seen:
                raise two_streams_called(source.alias, self.text, source.span)
            seen.add(source.alias)
        self._check_all_columns()

    def _check_all_columns(self) -> None:
        """Refuse columns of streams that cannot be read at their place."""
        known = frozenset(self.aliases)
        self._check_columns(_expressions(self.predicates), known)
        for join in self.fixed_joins:
            self._check_columns(_expressions(join.predicates), known | {join.source.alias})
            if join.kind.shows_right:
                known |= {join.source.alias}
        self._check_columns((*self.selected, *_expressions(self.filters)), known)
        for existence in self.existences:
            self._check_columns(existence.expressions, known | {existence.source.alias})
        for output in self.outputs:
            if isinstance(output, Star) and output.source is not None and output.source not in known:
                raise QueryError(f"'{output.source}' is not a stream of this query", self.text, output.span)

    def _check_columns(self, expressions: Iterable[Expression], known: frozenset[str]) -> None:
        hidden = {join.source.alias: join for join in self.fixed_joins}
        for expression in expressions:
            for column in columns_of(expression):
                if column.source is not None and column.source not in known:
                    problem, hint = f"'{column.source}' is not a stream of this query", None
                    if column.source in hidden:
                        kind = hidden[column.source].kind
                        problem = f"'{column.source}' cannot be used here"
                        hint = f"{kind.value} shows it only to " + (
                            "what follows in FROM"
                            if kind.shows_right
                            else "its own ON: write conditions there; to select its columns, use JOIN"
                        )
                    raise QueryError(problem, self.text, column.span, hint)

    @property
    def selected(self) -> tuple[Expression, ...]:
        """The expressions of the result's columns, without stars."""
        return tuple(output.expression for output in self.outputs if isinstance(output, Output))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression of the query: of its columns, its conditions, its fixed joins and its existence tests."""
        return (*self.selected, *_expressions(self.predicates), *self._later_conditions)

    @property
    def _later_conditions(self) -> tuple[Expression, ...]:
        """The conditions that come after the inner joins."""
        of_joins = [expression for join in self.fixed_joins for expression in _expressions(join.predicates)]
        of_existences = [expression for existence in self.existences for expression in existence.expressions]
        return (*of_joins, *_expressions(self.filters), *of_existences)

    @property
    def inputs(self) -> tuple[Source, ...]:
        """All streams the query reads: those of the inner joins, of the fixed joins, and of the existence tests."""
        return (
            *self.sources,
            *(join.source for join in self.fixed_joins),
            *(existence.source for existence in self.existences),
        )

    @property
    def shown(self) -> tuple[Source, ...]:
        """The streams whose columns results can have, in the order of the text."""
        return (*self.sources, *(join.source for join in self.fixed_joins if join.kind.shows_right))

    @property
    def compared(self) -> tuple[Column, ...]:
        """The columns of results that existence tests read, each once."""
        columns: list[Column] = []
        for existence in self.existences:
            for expression in existence.expressions:
                columns.extend(column for column in columns_of(expression) if column.source != existence.source.alias)
        return tuple(dict.fromkeys(columns))

    @cached_property
    def projected(self) -> tuple[Output | Star, ...]:
        """What the inner joins give to the rest of the query: its outputs, or the columns that later parts read."""
        if not self.fixed_joins:
            return (*self.outputs, *(Output(str(column), column) for column in self.compared))
        read = [column for expression in (*self.selected, *self._later_conditions) for column in columns_of(expression)]
        columns = dict.fromkeys(column for column in read if column.source in self.aliases)
        return tuple(Output(str(column), column) for column in columns)

    @property
    def lags(self) -> tuple[int, ...]:
        """For each fixed join, how long after its start a row before it comes at the latest; FOREVER if ever."""
        windows = [source.window for source in self.sources]
        return tuple(lags(windows, [(join.kind, join.source.window) for join in self.fixed_joins]))

    @property
    def ends_at_joins(self) -> bool:
        """Whether the results of the inner joins are those of the query, but for groups."""
        return not (self.fixed_joins or self.existences)

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of the streams of the inner joins."""
        return tuple(source.alias for source in self.sources)

    @property
    def bound(self) -> bool:
        """Whether every name of the query has been resolved against declared streams."""
        return all(source.declaration is not None for source in self.inputs)

    @property
    def counts_rows(self) -> bool:
        """Whether a joined stream has a window that counts rows, so that rows must be processed in event-time order."""
        return any(source.window.counts_rows for source in self.sources)

    @property
    def later_parts(self) -> str:
        """What follows the inner joins, for error texts: for example LEFT JOIN, NOT EXISTS."""
        joins = [join.kind.value for join in self.fixed_joins]
        tests = ["NOT EXISTS" if existence.negated else "EXISTS" for existence in self.existences]
        return ", ".join(dict.fromkeys([*joins, *tests]))

    def source(self, alias: str) -> Source:
        return next(source for source in self.inputs if source.alias == alias)

    @cached_property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The schema of each joined stream that is declared."""
        return {source.alias: source.declaration.schema for source in self.sources if source.declaration is not None}

    @cached_property
    def graph(self) -> JoinGraph:
        """The join graph of the conditions.

        Before binding, it exists only if every column in a condition is written with its stream.
        """
        for predicate in self.predicates:
            for column in columns_of(predicate.expression):
                if column.source is None:
                    raise QueryError(
                        f"which stream does column '{column.name}' belong to?",
                        self.text,
                        column.span,
                        f"write it as stream.{column.name}, or bind the query to its streams first",
                    )
        return JoinGraph.of(self.aliases, self.predicates, self.schemas)

    def conditions_within(self, streams: frozenset[str]) -> tuple[Predicate, ...]:
        """Every condition that reads no stream but these.

        This includes equalities that follow through other streams: `a.k = c.k AND c.k = b.k` implies `a.k = b.k`. A
        condition that reads no stream belongs to the first stream of the query. The answer is cached, because the
        search for derived streams to reuse asks for the same streams many times.
        """
        if streams not in self._conditions_within:
            self._conditions_within[streams] = self._find_conditions_within(streams)
        return self._conditions_within[streams]

    @cached_property
    def _conditions_within(self) -> dict[frozenset[str], tuple[Predicate, ...]]:
        return {}

    def _find_conditions_within(self, streams: frozenset[str]) -> tuple[Predicate, ...]:
        first = frozenset(self.aliases[:1])
        written = [predicate for predicate in self.predicates if (predicate.sources or first) <= streams]
        aliases = tuple(alias for alias in self.aliases if alias in streams)
        graph_within = JoinGraph.of(aliases, written, self.schemas)
        known = {*written, *graph_within.equalities_within(streams, self.schemas)}
        equalities = self.graph.equalities_within(streams, self.schemas)
        return (*written, *(equality for equality in equalities if equality not in known))


def _expressions(predicates: Iterable[Predicate]) -> tuple[Expression, ...]:
    return tuple(predicate.expression for predicate in predicates)
