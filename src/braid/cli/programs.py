"""Site programs for machines: each instruction a JSON object, its conditions and columns as the query writes them."""

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
    """What is done, and to what; guards that let everything through, and what is empty, are left out."""
    values = {field.name: getattr(instruction, field.name) for field in fields(instruction)}
    told = {name: _value(value) for name, value in values.items() if value not in (ALWAYS, ())}
    return {"instruction": type(instruction).__name__.lower(), **told}


def _value(value: Any) -> Any:
    match value:
        case str() | int() | float() | None:
            return value
        case tuple():
            return [_value(part) for part in value]
        case frozenset():
            return sorted((_value(part) for part in value), key=lambda part: (str(type(part)), part))
        case Output():
            return {"name": value.name, "is": str(value.expression)}
        case Star():
            return "*" if value.source is None else f"{value.source}.*"
        case Guard():
            limits = {"since": value.since, "until": value.until}
            told = {name: limit for name, limit in limits.items() if abs(limit) != FOREVER}
            return told if value.partitions is None else {"partitions": _value(value.partitions), **told}
        case Advertisement():
            return {"query": value.query.text, "site": value.site}
        case HashPartitions() | ValuePartition() | RangePartition():
            return {field.name: _value(getattr(value, field.name)) for field in fields(value)}
    return str(value)
