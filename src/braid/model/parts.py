"""The parts of a plan: which keys have an order of their own, as users write it, as text, and checked.

A plan with parts is written as a list of pairs, each with the keys of a part and its plan:

    [({"k": [1, 2, 3]}, P1), ({"k": {"from": 10, "below": 20}}, P2), ("rest", P3)]
    [({"k": {"hash": [0, 2], "of": 4}}, P1), ({"k": {"hash": [1, 3], "of": 4}}, P2)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations, pairwise
from typing import Any

from braid.errors import PlanError, did_you_mean
from braid.model.expressions.expression import Column
from braid.model.graph import AttributeClass
from braid.model.part_keys import read_key, show_keys, write_key
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition
from braid.model.query import Query

REST = "rest"
"""What users write for the keys of no other part."""

FORMS = 'give a list of keys, {"from": .., "below": ..} or {"hash": [..], "of": ..}'


def are_parts(written: Sequence[Any], streams: Sequence[str] = ()) -> bool:
    """Whether a list is a plan with parts and not a tree of `streams`, which has only names and lists, and no keys."""
    pairs = [entry for entry in written if isinstance(entry, tuple | list)]
    has_keys = any(isinstance(item, Mapping) for items in (written, *pairs) for item in items)
    return has_keys or (REST not in streams and any(pair and pair[0] == REST for pair in pairs))


def read_parts(written: Sequence[Any], query: Query) -> tuple[list[tuple[Partitioning, Any]], Any]:
    """The partition and the written plan of each part, and the written plan of the rest of the keys.

    Without a "rest" the other parts must cover all keys, and the last of them is then the rest.
    """
    try:
        return _read_parts(written, query)
    except TypeError as problem:
        # The types of keys are not known before a query is bound.
        raise PlanError(f"the keys of these parts cannot be compared with each other: {problem}") from None


def _read_parts(written: Sequence[Any], query: Query) -> tuple[list[tuple[Partitioning, Any]], Any]:
    parts: list[tuple[Partitioning, Any]] = []
    rests: list[Any] = []
    for pair in written:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise PlanError(f'a part of a plan is a pair of its keys, or "rest", and its plan, not {pair!r:.120}')
        keys, plan = pair
        if keys == REST:
            rests.append(plan)
        else:
            parts.append((_read_keys(keys, query), plan))
    if len(rests) > 1:
        raise PlanError(f'a plan has one part "rest", not {len(rests)}; join them')
    partitions = [partition for partition, _ in parts]
    check_disjoint(partitions)
    if rests:
        return parts, rests[0]
    left_out = _left_out(partitions)
    if left_out is not None:
        raise PlanError(f'the parts of a plan must cover every key, but {left_out}; add a part ("rest", ..)')
    return parts[:-1], parts[-1][1]


def write_part(partition: Partitioning, query: Query) -> dict[str, Any]:
    """The keys of a part as values of JSON, in the form that `read_parts` reads."""
    return {name_of(partition.attribute_class, query): _write_keys(partition)}


def _write_keys(partition: Partitioning) -> Any:
    match partition:
        case HashPartitions():
            return {"hash": sorted(partition.members), "of": partition.count}
        case RangePartition():
            limits = {"from": partition.first, "below": partition.below}
            return {name: write_key(limit) for name, limit in limits.items() if limit is not None}
        case ValuePartition():
            return [write_key(key) for key in sorted(partition.values, key=_order)]


def show_part(partition: Partitioning, query: Query) -> str:
    """The keys of a part as readable text."""
    name = name_of(partition.attribute_class, query)
    match partition:
        case HashPartitions():
            classes = "hash class" if len(partition.members) == 1 else "hash classes"
            return f"{name} in {classes} {show_keys(list(partition.members))} of {partition.count}"
        case RangePartition():
            first = "" if partition.first is None else f" from {show_keys([partition.first])}"
            end = "" if partition.below is None else f" below {show_keys([partition.below])}"
            return f"{name}{first}{end}"
        case ValuePartition():
            return f"{name} in ({show_keys(list(partition.values))})"


def name_of(attribute_class: AttributeClass, query: Query) -> str:
    """The shortest name of an attribute class: that of a column, if no other class has a column of that name."""
    for _, member in attribute_class.members:
        for name in (member.name, str(member)) if isinstance(member, Column) else (str(member),):
            if [other for other in query.graph.classes if name in _names(other)] == [attribute_class]:
                return name
    return str(attribute_class)


def check_disjoint(partitions: Sequence[Partitioning]) -> None:
    """Refuse parts that are not of one attribute class, that overlap, or that cannot be written."""
    for partition in partitions:
        if isinstance(partition, ValuePartition) and (partition.others or partition.ranges):
            raise PlanError("a part of a plan is a set of keys, one range or some hash classes")
    if len({partition.attribute_class for partition in partitions}) > 1:
        names = " and ".join(sorted({f"'{partition.attribute_class}'" for partition in partitions}))
        raise PlanError(f"the parts of a plan divide the keys of one equality, not of {names}")
    for one, other in combinations(partitions, 2):
        overlap = _overlap(one, other)
        if overlap is not None:
            raise PlanError(f"two parts of the plan overlap: {overlap}; each key must be in one part")


def _read_keys(written: Any, query: Query) -> Partitioning:
    if not isinstance(written, Mapping) or len(written) != 1:
        raise PlanError(f'the keys of a part are {{column: keys}} or "rest", not {written!r:.120}')
    ((name, keys),) = written.items()
    attribute_class = _class_named(name, query)
    if isinstance(keys, Mapping):
        if set(keys) == {"hash", "of"}:
            return _hash_classes(attribute_class, keys["hash"], keys["of"])
        if keys and set(keys) <= {"from", "below"}:
            limits = [keys.get(name) for name in ("from", "below")]
            first, last = (None if limit is None else read_key(limit, attribute_class) for limit in limits)
            return RangePartition(attribute_class, first, last)
    elif isinstance(keys, Sequence | Set) and not isinstance(keys, str | bytes):
        if not keys:
            raise PlanError(f"the part of '{name}' has no keys; leave it out")
        return ValuePartition(attribute_class, frozenset(read_key(key, attribute_class) for key in keys))
    raise PlanError(f"the keys of '{name}' cannot be {keys!r:.120}; {FORMS}")


def _hash_classes(attribute_class: AttributeClass, members: Any, count: Any) -> HashPartitions:
    is_list = isinstance(members, Sequence | Set) and not isinstance(members, str)
    if type(count) is not int or not is_list or not all(type(member) is int for member in members):
        raise PlanError(f"hash classes are whole numbers, not {members!r:.80} of {count!r:.20}")
    if not members:
        raise PlanError("a part has at least one hash class; leave the part out")
    return HashPartitions(attribute_class, count, frozenset(members))


def _class_named(name: object, query: Query) -> AttributeClass:
    """The attribute class that has a column or an expression of this name."""
    classes = query.graph.classes
    named = [attribute_class for attribute_class in classes if name in _names(attribute_class)]
    if len(named) == 1:
        return named[0]
    if named:
        examples = " or ".join(f"'{name_of(attribute_class, query)}'" for attribute_class in named)
        raise PlanError(f"'{name}' is the name of several join keys; say which: {examples}")
    if not classes:
        raise PlanError(f"there are no keys '{name}' to divide: no equality joins the streams of this query")
    hint = did_you_mean(str(name), [name_of(attribute_class, query) for attribute_class in classes])
    raise PlanError(f"the parts of a plan are by a join key, and '{name}' is none; {hint}")


def _names(attribute_class: AttributeClass) -> set[str]:
    """Everything that a class may be called: by a column, by a stream and its column, or by the whole equality."""
    members = [member for _, member in attribute_class.members]
    columns = {member.name for member in members if isinstance(member, Column)}
    return columns | {str(member) for member in members} | {str(attribute_class)}


def _overlap(one: Partitioning, other: Partitioning) -> str | None:
    """What two parts have in common, as text; None if nothing."""
    if isinstance(one, HashPartitions) or isinstance(other, HashPartitions):
        if not (isinstance(one, HashPartitions) and isinstance(other, HashPartitions) and one.count == other.count):
            return "hash classes stand beside other parts, or beside those of another number of classes"
        common = one.members & other.members
        return f"hash class {show_keys(list(common))} of {one.count} is in both" if common else None
    if isinstance(other, ValuePartition):
        one, other = other, one
    if isinstance(one, ValuePartition):
        both = [key for key in one.values if other.covers(key)]
        return f"{show_keys(both)} is in both" if both else None
    assert isinstance(one, RangePartition) and isinstance(other, RangePartition)
    first, second = sorted((one, other), key=_starts)
    if first.below is None or (second.first is None) or second.first < first.below:
        return f"{_range_text(first)} and {_range_text(second)}"
    return None


def _left_out(partitions: Sequence[Partitioning]) -> str | None:
    """Keys that are in none of some disjoint parts, as text; None if every key is in one."""
    ranges = sorted((part for part in partitions if isinstance(part, RangePartition)), key=_starts)
    if not ranges:
        hashes = [part for part in partitions if isinstance(part, HashPartitions)]
        if not hashes:
            return "other keys than those listed may come"
        missing = frozenset(range(hashes[0].count)).difference(*(part.members for part in hashes))
        return f"hash class {show_keys(list(missing))} of {hashes[0].count} is in none" if missing else None
    if ranges[0].first is not None:
        return f"keys below {show_keys([ranges[0].first])} are in none"
    for earlier, later in pairwise(ranges):
        if earlier.below != later.first:
            return f"keys from {show_keys([earlier.below])} to below {show_keys([later.first])} are in none"
    return None if ranges[-1].below is None else f"keys from {show_keys([ranges[-1].below])} on are in none"


def _starts(part: RangePartition) -> tuple[bool, Any]:
    return (part.first is not None, part.first if part.first is not None else 0)


def _range_text(part: RangePartition) -> str:
    first = "the first key" if part.first is None else show_keys([part.first])
    return f"{first} to {'the last key' if part.below is None else f'below {show_keys([part.below])}'}"


def _order(key: Any) -> tuple[bool, Any]:
    return (key != key, 0 if key != key else key)
