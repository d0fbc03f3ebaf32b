"""Control messages: what the driver of a query asks of all its shards between two batches.

A message is in the input by the time a shard reads it, and will be read again after every crash. So whatever it says,
a shard must be able to go on: what makes no sense is a `BraidError` here, and the shard rejects and counts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from braid.errors import BraidError
from braid.model.plan import Written
from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Go on with another plan, given as people write one."""

    plan: Written


@dataclass(frozen=True, slots=True)
class PassIdle:
    """Take idle streams, by name, to have reached an event time in microseconds."""

    reached: Mapping[str, int]


Message = ChangePlan | PassIdle


def in_order(payloads: Iterable[bytes]) -> list[bytes]:
    """The messages of a batch in the order they were sent: they arrive in any order, and the last one wins."""
    return sorted(payloads, key=_number)


def parse_message(payload: bytes) -> Message:
    """What a message asks for; `BraidError` for anything that is none."""
    content = _content(payload)
    if content.get("plan") is not None:
        return ChangePlan(content["plan"])
    reached = content.get("reached")
    if isinstance(reached, dict) and all(_is_time(moment) for moment in reached.values()):
        return PassIdle(reached)
    raise BraidError('it has neither a "plan" nor, under "reached", a time in microseconds for each of some streams')


def _is_time(moment: object) -> bool:
    return type(moment) is int and abs(moment) <= FOREVER


def _content(payload: bytes) -> dict[str, Any]:
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as problem:
        raise BraidError(f"it is no JSON: {problem}") from problem
    return content if isinstance(content, dict) else {}


def _number(payload: bytes) -> int:
    try:
        number = _content(payload).get("number")
    except BraidError:
        return 0
    return number if isinstance(number, int) else 0
