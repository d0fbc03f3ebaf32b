"""The fingerprint of a query on a checkpoint: what it means, and what must not change between runs.

Two texts that mean the same have the same fingerprint: white space, the case of keywords, the order of conditions and
columns that are not read make no difference. A changed query goes on with the checkpoint if the stored rows are all it
needs: other columns of the stored ones are selected, or there are more conditions. Fingerprints are plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from braid.errors import BraidError
from braid.model.expressions.expression import Call, Cast, Column, Expression, HostExpression, Literal
from braid.model.grouping import Grouping
from braid.model.output import Output, Star
from braid.model.predicate import MIRRORED, Predicate
from braid.model.projection import Projection
from braid.model.query import Existence, Query, Source
from braid.model.ranking import Ranking

Fingerprint = Mapping[str, Any]
"""By name: the parts in `PART_TEXTS`, which are compared, and `text`, which is only shown."""


def meaning(query: Query) -> dict[str, Any]:
    """What a bound query means, whatever its text looks like."""
    parts = {
        "streams": list(map(_source, query.sources)),
        "conditions": sorted([*_conditions(query.predicates), *_of_host(query.projection)]),
        "columns": [] if query.grouping is not None else _columns(_outputs(query)),
        "groups": None if query.grouping is None else _groups(query.grouping),
        "excluded": [_existence(existence) for existence in query.existences],
    }
    # Checkpoints of earlier versions do not have what came later, so it is there only if the query has it.
    if query.distinct:
        parts["distinct"] = True
    if query.ranking is not None:
        parts["ranks"] = _ranks(query.ranking)
    if query.fixed_joins:
        parts["joins"] = [
            [join.kind.value, _source(join.source), _conditions(join.predicates)] for join in query.fixed_joins
        ]
        parts["filters"] = _conditions(query.filters)
    return parts


def _outputs(query: Query) -> Iterable[Output | Star]:
    return query.outputs if query.projection is None else query.projection.outputs


def _existence(existence: Existence) -> list[Any]:
    test = [_source(existence.source), _conditions(existence.predicates)]
    return test if existence.negated else [*test, "EXISTS"]


def expression_text(expression: Expression) -> str:
    """An expression as a text that is different for expressions of different meanings."""
    match expression:
        case Column(source, name):
            return f"{source}.{name!r}"
        case Literal(value, type_):
            return f"{value!r}:{type_}"
        case Cast(operand, type_):
            return f"cast({expression_text(operand)}:{type_})"
        case HostExpression(_, _, type_):
            return f"host({expression.sql(expression_text)}:{type_})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(expression_text, arguments))})"


def check_fingerprint(stored: Fingerprint, wanted: Fingerprint) -> None:
    """Refuse with a `BraidError` to go on with a checkpoint whose rows do not suffice for a query."""
    change = fingerprint_change(stored, wanted)
    if change is None:
        return
    if differs_in_shards_only(stored, wanted):
        raise BraidError(
            f"the checkpoint has other shards: {change}\n"
            f"rescale it (braid rescale CHECKPOINT --shards {_count(wanted)}, or the query's method `rescale`), or go "
            "back to its number of shards and partitions"
        )
    obstacle = _obstacle(stored, wanted)
    if obstacle is not None:
        raise BraidError(
            f"the checkpoint belongs to another query: {change}\n"
            f"this query cannot go on from it: {obstacle}\n"
            "go back to the first one, or start on a new checkpoint and a new place for the results"
        )


def goes_on(stored: Fingerprint, wanted: Fingerprint) -> bool:
    """Whether a query can go on with the checkpoint of another one, or of the same."""
    return fingerprint_change(stored, wanted) is None or _obstacle(stored, wanted) is None


def _obstacle(stored: Fingerprint, wanted: Fingerprint) -> str | None:
    """Why a query with another meaning cannot go on with the rows of a checkpoint; None if it can."""
    if "streams" not in stored or "streams" not in wanted:
        return "a query at several sites keeps its text"
    before, now = stored["query"], wanted["query"]
    if before["streams"] != now["streams"]:
        return _other_streams(before["streams"], now["streams"])
    if before.get("views") != now.get("views"):
        return "its tables, or SELECTs and window functions in FROM, are others"
    if len(before["streams"]) > len(stored["streams"]):
        return "a stream is in it more than once"
    if any(before.get(part) for part in ("excluded", "joins")):
        return "with outer, semi or anti joins, EXISTS, IN or EXCEPT, the checkpoint has rows that wait for them"
    if any(now.get(part) for part in ("excluded", "joins")):
        return "the rows that its outer, semi or anti joins, EXISTS, IN or EXCEPT need were not kept"
    if any(stream.get("computed") for part in (stored, wanted) for stream in part["streams"].values()):
        return "conditions have functions of Spark, and shards store their values instead of the columns that they read"
    if before.get("distinct"):
        return "the first one has DISTINCT, and Spark holds its results"
    if now.get("distinct"):
        return "it has DISTINCT, and the results of the first one were not kept"
    if before.get("ranks") != now.get("ranks"):
        return "it ranks its results otherwise, and Spark holds the best of the first one"
    if before["groups"] is None and now["groups"] is not None:
        return "it groups its results, and those of the first one were not kept"
    if before["groups"] != now["groups"]:
        return "it groups its results otherwise, and Spark holds the groups of the first one"
    if not set(before["conditions"]) <= set(now["conditions"]):
        return "a condition of the first one is missing, and rows that did not meet it were not kept"
    if stored["shards"] != wanted["shards"]:
        return "its conditions divide the rows among shards otherwise"
    return _missing_columns(stored["streams"], wanted["streams"])


def _other_streams(before: Sequence[str], now: Sequence[str]) -> str:
    """How the streams of two queries differ, each with its window and its alias."""
    if sorted(before) == sorted(now):
        return "its streams are in another order; keep the order of the first one"
    others = ", ".join(stream for stream in now if stream not in before)
    missing = ", ".join(stream for stream in before if stream not in now)
    return f"it has other streams or windows: {others or 'none'} instead of {missing or 'none'}"


def _missing_columns(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Which columns of which stream a checkpoint does not have; None if it has all."""
    for name, stream in wanted.items():
        if name not in stored or stored[name]["time"] != stream["time"]:
            return f"stream '{name}' has another event time"
        missing = [
            f"{column}: {kind}" for column, kind in stream["columns"] if [column, kind] not in stored[name]["columns"]
        ]
        if missing:
            return f"of stream '{name}', {', '.join(missing)} was not kept"
    return None


def fingerprint_change(stored: Fingerprint, wanted: Fingerprint) -> str | None:
    """The first difference between two fingerprints, as an error text shows it; None if they mean the same."""
    changed = [name for name in PART_TEXTS if stored.get(name) != wanted.get(name)]
    for name in changed:
        before, now = PART_TEXTS[name](stored), PART_TEXTS[name](wanted)
        # The same text means something else if a stream has changed; then the part for streams shows it.
        if before.split() != now.split():
            return f"it was for\n{before}\nand this is\n{now}"
    for name in changed:
        return f"it was for\n{json.dumps(stored.get(name))}\nand this is\n{json.dumps(wanted.get(name))}"
    return None


def differs_in_shards_only(stored: Fingerprint, wanted: Fingerprint) -> bool:
    """Whether two fingerprints are of the same query, divided among other shards."""
    return [name for name in PART_TEXTS if stored.get(name) != wanted.get(name)] == ["shards"]


def _source(source: Source) -> str:
    return f"{source.declared.name!r} {source.window} {source.alias!r}"


def _of_host(projection: Projection | None) -> list[str]:
    """The conditions that the host checks."""
    return [] if projection is None else sorted(map(expression_text, projection.conditions))


def _columns(outputs: Iterable[Output | Star]) -> list[list[str]]:
    return [[output.name, expression_text(output.expression)] for output in outputs if isinstance(output, Output)]


def _groups(grouping: Grouping) -> dict[str, Any]:
    return {
        "columns": _columns(grouping.selected),
        "keys": sorted(map(expression_text, grouping.keys)),
        "window": None if grouping.window is None else str(grouping.window),
        "having": None if grouping.having is None else expression_text(grouping.having),
        **({"having of the host": of_host} if (of_host := _of_host(grouping.projection)) else {}),
    }


def _ranks(ranking: Ranking) -> dict[str, Any]:
    order = [[expression_text(item.expression), item.descending, item.nulls_first] for item in ranking.order]
    return {
        "columns": _columns(ranking.outputs),
        "keys": sorted(map(expression_text, ranking.keys)),
        "window": None if ranking.window is None else str(ranking.window),
        "start": None if ranking.start is None else expression_text(ranking.start),
        "order": order,
        "ranks": [ranking.first, ranking.last],
        "conditions": sorted(map(expression_text, ranking.conditions)),
    }


def _conditions(predicates: Iterable[Predicate]) -> list[str]:
    """Conditions in any order; each must hold, so one that is written twice counts once."""
    return sorted({_condition(predicate.expression) for predicate in predicates})


def _condition(expression: Expression) -> str:
    """A condition; a comparison has the same text with its sides swapped."""
    if isinstance(expression, Call) and expression.function in MIRRORED:
        left, right = expression.arguments
        swapped = Call(MIRRORED[expression.function], (right, left))
        return min(expression_text(expression), expression_text(swapped))
    return expression_text(expression)


def _query_text(fingerprint: Fingerprint) -> str:
    """The text as it was written. Blank lines are left out: they would end a paragraph, and with it the message."""
    return "\n".join(line.rstrip() for line in fingerprint["text"].splitlines() if line.strip())


def _streams_text(fingerprint: Fingerprint) -> str:
    """A line for each stream."""
    lines = []
    for name, stream in fingerprint["streams"].items():
        columns = ", ".join(f"{column}: {kind}" for column, kind in stream["columns"])
        lines.append(f"{name} ({columns}), by {stream['time']}")
    return "\n".join(lines)


def _computed_text(fingerprint: Fingerprint) -> str:
    """A line for each expression that the host computes."""
    return "\n".join(f"{expression}: {kind}" for expression, kind in fingerprint.get("computed", {}).items())


def _shards_text(fingerprint: Fingerprint) -> str:
    shards = fingerprint["shards"]
    sides = [f"{side['share']} by {' and '.join(side['streams'])}" for side in shards["grid"]]
    count = _count(fingerprint)
    grid = f"{count} shards: {', '.join(sides)}" if count > 1 else "1 shard"
    return f"{grid} (spark.sql.shuffle.partitions is {shards['partitions']})"


def _count(fingerprint: Fingerprint) -> int:
    return prod(side["share"] for side in fingerprint["shards"]["grid"])


PART_TEXTS: Mapping[str, Callable[[Fingerprint], str]] = {
    "query": _query_text,
    "streams": _streams_text,
    "computed": _computed_text,
    "shards": _shards_text,
}
"""The parts of a fingerprint that are compared, and how an error text shows each."""
