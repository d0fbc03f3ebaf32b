"""A plan as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from braid.model.expressions.expression import Call
from braid.model.predicate import Predicate
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree, Leaf, Merge, merges, probe_order


def explain(query: Query, sequences: Mapping[str, Sequence[str]], tree: JoinTree | None, statistics: Statistics) -> str:
    """The text of `Plan.explain`, of a plan with these probe sequences and this tree."""
    lines = [f"join of {len(query.sources)} streams" if len(query.sources) > 1 else "one stream"]
    for source in query.sources:
        lines.append(f"  {source}")
        lines += [f"    where {predicate}" for predicate in query.graph.selections_of(source.alias)]
    if isinstance(tree, Merge):
        lines += [f"  kept: {merge}" for merge in merges(tree) if merge is not tree]
    for head, sequence in sequences.items():
        lines.append(f"new rows of {head}: {_rows(statistics.rate(query.source(head)))}")
        if isinstance(tree, Merge):
            lines += _steps_up(query, tree, head, statistics)
        else:
            lines += _steps(query, head, sequence, statistics)
    lines += [f"then {exclusion}" for exclusion in query.exclusions]
    if query.grouping is not None:
        lines.append(f"then {query.grouping}")
    return "\n".join(lines)


def _steps(query: Query, head: str, sequence: Sequence[str], statistics: Statistics) -> list[str]:
    lines: list[str] = []
    bound = [head]
    rows = statistics.rate(query.source(head))
    for number, stream in enumerate(sequence, 1):
        predicates = conditions_at(query, bound, stream)
        population = statistics.population(query.source(stream))
        selectivity = statistics.selectivity(predicates, [*bound, stream]) if len(bound) == 1 else None
        if selectivity is None:
            selectivity = statistics.selectivity(predicates, ())
        rows = None if rows is None or population is None or selectivity is None else rows * population * selectivity
        on = " and ".join(map(str, predicates))
        by_band = ", by a band index" if query.graph.band_between(bound, [stream]) is not None else ""
        lines.append(f"  {number}. probe {stream} {f'on {on}{by_band}' if on else '(every row)'}: {_rows(rows)}")
        bound.append(stream)
    return lines


def _steps_up(query: Query, tree: Merge, head: str, statistics: Statistics) -> list[str]:
    """The way of a row up a tree: at each join it probes the other inputs, and kept combinations as a whole."""
    lines: list[str] = []
    rows = statistics.rate(query.source(head))
    for merge in merges(tree):
        within = next((part for part in merge.inputs if head in part.streams), None)
        if within is None:
            continue
        bound = within.streams
        for part in probe_order(query, merge.inputs, within):
            predicates, share = _met(query, bound, part.streams, statistics)
            rows = _product(rows, _population(query, part, statistics), share)
            on = " and ".join(map(str, predicates))
            by_band = ", by a band index" if query.graph.band_between(bound, part.streams) is not None else ""
            conditions = f"on {on}{by_band}" if on else "(every row)"
            lines.append(f"  {len(lines) + 1}. probe {part} {conditions}: {_rows(rows)}")
            bound |= part.streams
    return lines


def _population(query: Query, part: JoinTree, statistics: Statistics) -> float | None:
    """How many rows or combinations are there to be probed."""
    if isinstance(part, Leaf):
        return statistics.population(query.source(part.stream))
    if not isinstance(part, Merge):
        return None
    first, *others = part.inputs
    population, bound = _population(query, first, statistics), first.streams
    for other in others:
        share = _met(query, bound, other.streams, statistics)[1]
        population, bound = _product(population, _population(query, other, statistics), share), bound | other.streams
    return population


def _met(
    query: Query, some: frozenset[str], others: frozenset[str], statistics: Statistics
) -> tuple[tuple[Predicate, ...], float | None]:
    """By what two groups of joined streams meet, and the share of their combinations that do."""
    classes, residuals = query.graph.between(some, others)
    equalities = []
    for tied in classes:
        sides = [
            next(alias for alias in query.graph.streams if alias in group & tied.sources) for group in (some, others)
        ]
        ordered = sorted(sides, key=query.graph.streams.index)
        equalities.append(Predicate(Call("equal", tuple(tied.key(side) for side in ordered))))
    predicates = (*equalities, *residuals)
    pair = some | others if len(some) == len(others) == 1 else ()
    return predicates, statistics.selectivity(predicates, pair)


def _product(*figures: float | None) -> float | None:
    return prod(figure for figure in figures if figure is not None) if None not in figures else None


def conditions_at(query: Query, bound: Sequence[str], stream: str) -> tuple[Predicate, ...]:
    """What is checked when `stream` is probed by combinations of the streams already joined."""
    graph = query.graph
    equalities = []
    for attribute_class in graph.classes_between(bound, stream):
        bringer = next(alias for alias in bound if alias in attribute_class.sources)
        sides = sorted((bringer, stream), key=graph.streams.index)
        equalities.append(Predicate(Call("equal", tuple(attribute_class.key(side) for side in sides))))
    return (*equalities, *graph.residuals_at(bound, stream))


def _rows(per_second: float | None) -> str:
    return "unknown rows/s" if per_second is None else f"about {per_second:,.4g} rows/s"
