"""Random plans with a separate order for each part of the keys, and random changes between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from braid.engine.join.partitions import check_partition
from braid.engine.kernels.expression import compile_expression
from braid.errors import BraidError
from braid.language import parse
from braid.model.expressions.expression import Cast, Column
from braid.model.graph import AttributeClass
from braid.model.part_keys import read_key, write_key
from braid.model.partitions import RangePartition
from braid.model.parts import name_of
from braid.model.query import Query
from braid.runtime.arrival import Arrival
from braid.testing.case import Case
from braid.testing.changes import MOST_CHANGES, PlannedChanges, random_plan
from braid.testing.choices import Choices, SeededChoices

PlanMaker = Callable[[Choices, Sequence[str]], Any]
"""Makes a plan for some streams, in the notation of users."""

MOST_CLASSES = 5
"""The most hash classes of a random plan."""


def random_part_changes(case: Case, seed: int) -> PlannedChanges:
    """Changes between plans for a case, most of them with parts; the same for the same seed.

    Successive plans often have some parts in common, also with the same orders.
    """
    choices = SeededChoices(seed)
    arrivals = (Arrival(name, rows, case.time[name], "0 seconds") for name, rows in case.streams.items())
    query = parse(case.text, {arrival.stream.name: arrival.stream for arrival in arrivals})
    first_plan = latest = random_parts(choices, case, query)
    switches = {}
    for step in sorted({choices.integer(0, 6) for _ in range(choices.integer(1, MOST_CHANGES))}):
        if isinstance(latest, list) and not choices.once_in(3):
            latest = [(keys, choices.pick([old, random_plan(choices, query.aliases)])) for keys, old in latest]
        else:
            latest = random_parts(choices, case, query)
        switches[step] = latest
    return PlannedChanges(first_plan, switches)


def random_parts(choices: Choices, case: Case, query: Query, make: PlanMaker = random_plan) -> Any:
    """A plan with parts by values, ranges or hash classes of one key; sometimes a plan without parts.

    `make` makes the plan of each part.
    """
    if not query.graph.classes or choices.once_in(6):
        return make(choices, query.aliases)
    attribute_class = choices.pick(query.graph.classes)
    name, keys = name_of(attribute_class, query), _keys(case, query, attribute_class)
    kind = choices.pick(["values", "range", "hash"]) if keys else "hash"
    if kind == "values":
        keys_of_parts = _groups(choices, keys)
        parts: list[dict[str, Any]] = [{name: list(map(write_key, keys_of_part))} for keys_of_part in keys_of_parts]
    elif kind == "range":
        limits = [None, *sorted(choices.shuffle(keys)[: choices.integer(1, 2)]), None]
        parts = [{name: _range(first, below)} for first, below in pairwise(limits)]
    else:
        count = choices.integer(2, MOST_CLASSES)
        parts = [{name: {"hash": classes, "of": count}} for classes in _groups(choices, list(range(count)))]
    rest: list[Any] = ["rest"] if kind == "values" or choices.once_in(2) else []
    if rest and kind != "values":
        parts.pop(choices.integer(0, len(parts) - 1))
    return [(part, make(choices, query.aliases)) for part in [*parts, *rest]]


def _groups(choices: Choices, items: list[Any]) -> list[list[Any]]:
    """All items in up to three groups, none of them empty."""
    groups: list[list[Any]] = [[] for _ in range(choices.integer(1, 3))]
    for item in items:
        choices.pick(groups).append(item)
    return [group for group in groups if group]


def _range(first: Any, below: Any) -> dict[str, Any]:
    limits = {"from": first, "below": below}
    return {name: write_key(limit) for name, limit in limits.items() if limit is not None}


def _keys(case: Case, query: Query, attribute_class: AttributeClass) -> list[Any]:
    """Some keys that occur, in order; none if keys of this type have no order or cannot be written."""
    keys: list[Any] = []
    for alias in query.aliases:
        if alias in attribute_class.sources:
            keys += _keys_of(case, query, attribute_class, alias)
    try:
        distinct = sorted({read_key(key, attribute_class) for key in keys if key is not None and key == key})
        check_partition(RangePartition(attribute_class, None, distinct[0]))
    except (BraidError, TypeError, IndexError):
        return []
    return distinct


def _keys_of(case: Case, query: Query, attribute_class: AttributeClass, alias: str) -> Sequence[Any]:
    source = query.source(alias)
    rows = case.streams[source.declared.name].combine_chunks()
    key = Cast(attribute_class.key(alias), attribute_class.type)

    def type_of(column: Column) -> pa.DataType:
        return source.declared.schema.field(column.name).type

    compiled = compile_expression(key, type_of)
    columns = {}
    for column in compiled.columns:
        values = rows.column(column.name).cast(type_of(column))
        columns[column] = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], type_of(column))
    keys: list[Any] = compiled(columns, rows.num_rows).to_pylist()
    return keys
