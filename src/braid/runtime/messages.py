"""Control messages: what the driver of a query asks of all its shards between two batches.

A message is part of the input: after a crash, a shard reads it again. So a shard must be able to go on whatever a
message says. A message that cannot be understood raises `BraidError` here; the shard rejects and counts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from braid.adapt.expectation import UNKNOWN, Expectation
from braid.errors import BraidError
from braid.model.plan import Written
from braid.model.window import FOREVER
from braid.runtime.spread_table import SpreadTable


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Go on with another plan, in the notation that `Plan.of` reads; on trial, if there is a plan `against`.

    `expected` says what the trial is expected to show.
    """

    plan: Written
    against: Written | None = None
    expected: Expectation = UNKNOWN


@dataclass(frozen=True, slots=True)
class PassIdle:
    """Move idle streams on as if each, by name, had brought a row with this event time in microseconds."""

    reached: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SpreadKeys:
    """From some later batch on, rows are routed by this table of spread keys. It concerns shards only as news."""

    table: SpreadTable


Message = ChangePlan | PassIdle | SpreadKeys


def in_order(payloads: Iterable[bytes]) -> list[bytes]:
    """The messages of a batch in the order they were sent. They arrive in any order, and the last plan wins."""
    return sorted(payloads, key=_number)


def addressed_to(node: str, payloads: Iterable[bytes]) -> list[bytes]:
    """The messages for a node of a site: those that name it, and those that name none."""
    return [payload for payload in payloads if _address(payload) in (None, node)]


def parse_message(payload: bytes) -> Message:
    """What a message asks for; `BraidError` if it cannot be understood."""
    content = _content(payload)
    if content.get("plan") is not None:
        return ChangePlan(content["plan"], content.get("against"), Expectation.from_plain(content.get("expected")))
    reached = content.get("reached")
    if isinstance(reached, dict) and all(_is_time(moment) for moment in reached.values()):
        return PassIdle(reached)
    if isinstance(content.get("spread"), str):
        return SpreadKeys(SpreadTable.from_json(content["spread"]))
    raise BraidError('it has neither a "plan" nor a "reached" that maps streams to times in microseconds')


def _is_time(moment: object) -> bool:
    return type(moment) is int and abs(moment) <= FOREVER


def _content(payload: bytes) -> dict[str, Any]:
    """The fields of a message; none if it is valid JSON but no object."""
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as problem:
        raise BraidError(f"it is no valid JSON: {problem}") from problem
    return content if isinstance(content, dict) else {}


def _address(payload: bytes) -> Any:
    try:
        return _content(payload).get("node")
    except BraidError:
        return None  # Whoever gets it rejects it.


def _number(payload: bytes) -> int:
    """The sequence number of a message, 0 if it has none."""
    try:
        number = _content(payload).get("number")
    except BraidError:
        return 0
    return number if isinstance(number, int) else 0
