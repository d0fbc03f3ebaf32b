"""A plan as readable text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from braid.model.access import BAND, KEY, KEY_AND_BAND, Paths, possible_paths
from braid.model.expressions.expression import Call
from braid.model.graph import AttributeClass
from braid.model.numbers import readable
from braid.model.predicate import Predicate, conjunction
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, Merge, merges, probe_order

INDEXES = {
    KEY: ", by a key index",
    BAND: ", by a band index",
    KEY_AND_BAND: ", by an index of key and band",
}
"""How an access path is shown."""


def explain(query: Query, parts: Sequence[tuple[str, Sequence[str]]], rates: Mapping[str, float]) -> str:
    """The text of `Plan.explain`: for each part of the keys its name, and the lines of its orders.

    The name is left out if there is only one part. `rates` are those of streams whose rates are not known by part.
    """
    lines = [f"join of {len(query.sources)} streams" if len(query.sources) > 1 else "one stream"]
    for source in query.sources:
        lines.append(f"  {source}")
        lines += [f"    where {predicate}" for predicate in query.graph.selections_of(source.alias)]
    lines += [f"new rows of {alias}: {_rows(rate)}" for alias, rate in rates.items()]
    for keys, orders in parts:
        lines += orders if len(parts) == 1 else [f"{keys}:", *(f"  {line}" for line in orders)]
    if query.fixed_joins:
        lines.append("then in this order, because what is joined before decides which rows have a partner:")
    lines += [f"then {join}" for join in query.fixed_joins]
    lines += [f"then where {predicate}" for predicate in query.filters]
    lines += [f"then {existence}" for existence in query.existences]
    if query.projection is not None:
        lines += [f"then where {condition}, by the host" for condition in query.projection.conditions]
    if query.grouping is not None:
        lines.append(f"then {query.grouping}")
        if query.grouping.projection is not None:
            lines += [f"then having {condition}, by the host" for condition in query.grouping.projection.conditions]
    if query.ranking is not None:
        lines.append(f"then {query.ranking}")
    return "\n".join(lines)


def explain_orders(
    query: Query, sequences: Mapping[str, Sequence[str]], tree: JoinTree | None, statistics: Statistics, paths: Paths
) -> list[str]:
    """The lines for these probe sequences, this tree and these access paths."""
    lines = []
    if isinstance(tree, Merge):
        lines += [f"  kept: {merge}" for merge in merges(tree) if merge is not tree]
    for head, sequence in sequences.items():
        lines.append(f"new rows of {head}: {_rows(statistics.rate(query.source(head)))}")
        if isinstance(tree, Merge):
            lines += _tree_steps(query, tree, head, statistics)
        else:
            lines += _sequence_steps(query, head, sequence, statistics, paths)
    return lines


def _sequence_steps(
    query: Query, head: str, sequence: Sequence[str], statistics: Statistics, paths: Paths
) -> list[str]:
    """The lines for a head that probes one window after the other."""
    lines: list[str] = []
    bound = [head]
    rows = statistics.rate(query.source(head))
    for step, stream in enumerate(sequence, 1):
        predicates = conditions_at(query, bound, stream)
        population = statistics.population(query.source(stream))
        selectivity = statistics.selectivity(predicates, [*bound, stream]) if len(bound) == 1 else None
        if selectivity is None:
            selectivity = statistics.selectivity(predicates, ())
        measured = statistics.fanouts.get((head, frozenset([*bound, stream])))
        if measured is None:
            rows = _product(rows, population, selectivity)
        else:
            rows = _product(statistics.rate(query.source(head)), measured)
        conditions = _conditions(query, bound, [stream], predicates, paths.get((head, stream)))
        lines.append(f"  {step}. probe {stream} {conditions}: {_rows(rows)}")
        bound.append(stream)
    return lines


def _tree_steps(query: Query, tree: Merge, head: str, statistics: Statistics) -> list[str]:
    """The lines for a row on its way up a tree: at each join it probes the other inputs, each as a whole."""
    lines: list[str] = []
    rows = statistics.rate(query.source(head))
    for merge in merges(tree):
        own_input = next((subtree for subtree in merge.inputs if head in subtree.streams), None)
        if own_input is None:
            continue
        bound = own_input.streams
        for subtree in probe_order(query, merge.inputs, own_input):
            predicates, selectivity = _join_conditions(query, bound, subtree.streams, statistics)
            measured = statistics.fanouts.get((head, bound | subtree.streams))
            if measured is None:
                rows = _product(rows, _population(query, subtree, statistics), selectivity)
            else:
                rows = _product(statistics.rate(query.source(head)), measured)
            conditions = _conditions(query, bound, subtree.streams, predicates)
            lines.append(f"  {len(lines) + 1}. probe {subtree} {conditions}: {_rows(rows)}")
            bound |= subtree.streams
    return lines


def _conditions(
    query: Query,
    left: Collection[str],
    right: Collection[str],
    predicates: Sequence[Predicate],
    path: str | None = None,
) -> str:
    """The conditions of a probe, and its access path unless that is the only index of an equality."""
    if not predicates:
        return "(every row)"
    possible = possible_paths(query.graph, left, right)
    shown = INDEXES.get(path or possible[0], "") if possible != (KEY,) else ""
    return f"on {conjunction(predicates, 'and')}{shown}"


def _population(query: Query, tree: JoinTree, statistics: Statistics) -> float | None:
    """How many rows the window of a leaf holds, or how many combinations the join state of a join."""
    if isinstance(tree, Leaf):
        return statistics.population(query.source(tree.stream))
    if not isinstance(tree, Merge):
        return None
    first, *others = tree.inputs
    population = _population(query, first, statistics)
    bound = first.streams
    for other in others:
        _, selectivity = _join_conditions(query, bound, other.streams, statistics)
        population = _product(population, _population(query, other, statistics), selectivity)
        bound |= other.streams
    return population


def _join_conditions(
    query: Query, left: frozenset[str], right: frozenset[str], statistics: Statistics
) -> tuple[tuple[Predicate, ...], float | None]:
    """The conditions between two groups of joined streams, and the share of combinations that satisfies them."""
    classes, residuals = query.graph.between(left, right)
    equalities = []
    for attribute_class in classes:
        members = [alias for alias in query.graph.streams if alias in attribute_class.sources]
        first_left = next(alias for alias in members if alias in left)
        first_right = next(alias for alias in members if alias in right)
        equalities.append(_equality(query, attribute_class, first_left, first_right))
    predicates = (*equalities, *residuals)
    # The selectivity of a larger set of streams would also count conditions that were applied before.
    pair = left | right if len(left) == len(right) == 1 else ()
    return predicates, statistics.selectivity(predicates, pair)


def _product(*figures: float | None) -> float | None:
    """The product of the figures; None if one of them is unknown."""
    known = [figure for figure in figures if figure is not None]
    return prod(known) if len(known) == len(figures) else None


def conditions_at(query: Query, bound: Sequence[str], stream: str) -> tuple[Predicate, ...]:
    """The conditions that are checked when combinations of the streams `bound` probe `stream`."""
    equalities = []
    for attribute_class in query.graph.classes_between(bound, stream):
        partner = next(alias for alias in bound if alias in attribute_class.sources)
        equalities.append(_equality(query, attribute_class, partner, stream))
    return (*equalities, *query.graph.residuals_at(bound, stream))


def _equality(query: Query, attribute_class: AttributeClass, left: str, right: str) -> Predicate:
    """The equality of two streams in an attribute class, with the stream that comes first in FROM on the left."""
    sides = sorted((left, right), key=query.graph.streams.index)
    return Predicate(Call("equal", tuple(attribute_class.key(side) for side in sides)))


def _rows(per_second: float | None) -> str:
    return "unknown rows/s" if per_second is None else f"about {readable(per_second)} rows/s"
