"""A plan as text for people."""

from __future__ import annotations

from braid.model.expression import Call
from braid.model.plan import Plan
from braid.model.predicate import Predicate
from braid.model.statistics import Statistics


def explain(plan: Plan, statistics: Statistics) -> str:
    query = plan.query
    lines = [f"join of {len(query.sources)} streams" if len(query.sources) > 1 else "one stream"]
    for source in query.sources:
        lines.append(f"  {source}")
        lines += [f"    where {predicate}" for predicate in query.graph.selections_of(source.alias)]
    for head, sequence in plan.sequences.items():
        lines.append(f"new rows of {head}: {_rows(statistics.rate(query.source(head)))}")
        lines += _steps(plan, head, sequence, statistics)
    lines += [f"then {exclusion}" for exclusion in query.exclusions]
    if query.grouping is not None:
        lines.append(f"then {query.grouping}")
    return "\n".join(lines)


def _steps(plan: Plan, head: str, sequence: tuple[str, ...], statistics: Statistics) -> list[str]:
    query, lines, bound = plan.query, [], [head]
    rows = statistics.rate(query.source(head))
    for number, stream in enumerate(sequence, 1):
        predicates = conditions_at(plan, bound, stream)
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


def conditions_at(plan: Plan, bound: list[str], stream: str) -> tuple[Predicate, ...]:
    """What is checked when `stream` is probed by combinations of the streams already joined."""
    graph = plan.query.graph
    equalities = []
    for attribute_class in graph.classes_between(bound, stream):
        bringer = next(alias for alias in bound if alias in attribute_class.sources)
        sides = sorted((bringer, stream), key=graph.streams.index)
        equalities.append(Predicate(Call("equal", tuple(attribute_class.key(side) for side in sides))))
    return (*equalities, *graph.residuals_at(bound, stream))


def _rows(per_second: float | None) -> str:
    return "unknown rows/s" if per_second is None else f"about {per_second:,.4g} rows/s"
