"""Site programs as JSON: one object for each instruction, with conditions and columns as the query writes them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from braid.model.advertisement import Advertisement
from braid.model.output import Output, Star
from braid.model.partitions import HashPartitions, RangePartition, ValuePartition
from braid.model.program import ALWAYS, Guard, Instruction, SiteProgram
from braid.model.window import FOREVER


def program_json(program: SiteProgram) -> list[dict[str, Any]]:
    return [_instruction(instruction) for instruction in program.instructions]


def _instruction(instruction: Instruction) -> dict[str, Any]:
    """The instruction by name, with its fields. Empty fields are left out, and so are guards that are always true."""
    values = {field.name: getattr(instruction, field.name) for field in fields(instruction)}
    shown = {name: _value(value) for name, value in values.items() if value not in (ALWAYS, (), None)}
    return {"instruction": type(instruction).__name__.lower(), **shown}


def _value(value: Any) -> Any:
    match value:
        case str() | int() | float() | None:
            return value
        case tuple():
            return [_value(item) for item in value]
        case frozenset():
            # Values of different types have no order: sort by type first.
            return sorted((_value(item) for item in value), key=lambda item: (str(type(item)), item))
        case Output():
            return {"name": value.name, "is": str(value.expression)}
        case Star():
            return "*" if value.source is None else f"{value.source}.*"
        case Guard():
            return _guard(value)
        case Advertisement():
            return {"query": value.query.text, "site": value.site}
        case HashPartitions() | ValuePartition() | RangePartition():
            return {field.name: _value(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def _guard(guard: Guard) -> dict[str, Any]:
    """Only the limits that the guard has."""
    shown: dict[str, Any] = {}
    if guard.partitions is not None:
        shown["partitions"] = _value(guard.partitions)
    for name, limit in (("since", guard.since), ("until", guard.until)):
        if abs(limit) != FOREVER:
            shown[name] = limit
    return shown
