"""Guards as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from braid.model.key_json import keys_from_json, keys_to_json
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition
from braid.model.program import ALWAYS, Guard
from braid.model.query import Query


def guard_to_json(guard: Guard, query: Query) -> dict[str, Any] | None:
    if guard == ALWAYS:
        return None
    partitions = None if guard.partitions is None else _partitions_to_json(guard.partitions, query)
    return {"partitions": partitions, "since": guard.since, "until": guard.until}


def guard_from_json(content: Mapping[str, Any] | None, query: Query) -> Guard:
    if content is None:
        return ALWAYS
    partitions = content["partitions"]
    return Guard(
        None if partitions is None else _partitions_from_json(partitions, query), content["since"], content["until"]
    )


def _partitions_to_json(partitions: Partitioning, query: Query) -> dict[str, Any]:
    class_number = query.graph.classes.index(partitions.attribute_class)
    match partitions:
        case HashPartitions():
            return {
                "class": class_number,
                "kind": "hash",
                "count": partitions.count,
                "members": sorted(partitions.members),
            }
        case ValuePartition():
            return {
                "class": class_number,
                "kind": "values",
                "values": keys_to_json(list(partitions.values)),
                "others": partitions.others,
                "first": keys_to_json([first for first, _ in partitions.ranges]),
                "last": keys_to_json([last for _, last in partitions.ranges]),
            }
        case RangePartition():
            ends = keys_to_json([partitions.first, partitions.below])
            return {"class": class_number, "kind": "range", "ends": ends}
        case _:
            assert_never(partitions)


def _partitions_from_json(content: Mapping[str, Any], query: Query) -> Partitioning:
    attribute_class = query.graph.classes[content["class"]]
    match content["kind"]:
        case "hash":
            return HashPartitions(attribute_class, content["count"], frozenset(content["members"]))
        case "values":
            ranges = zip(keys_from_json(content["first"]), keys_from_json(content["last"]), strict=True)
            values = frozenset(keys_from_json(content["values"]))
            return ValuePartition(attribute_class, values, content["others"], tuple(ranges))
        case _:
            first, last = keys_from_json(content["ends"])
            return RangePartition(attribute_class, first, last)
