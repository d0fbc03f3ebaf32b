"""What is said about plan changes, as documents that all programs of a network share and that outlive them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from braid.channels.announced import Announced
from braid.channels.channels import Channels
from braid.errors import BraidError, ModelError
from braid.hosts.rejections import Rejections
from braid.runtime.migration.change import (
    Change,
    ChangeState,
    Fact,
    Phase,
    fact_from_json,
    fact_key,
    fact_to_json,
)
from braid.runtime.sites.deployed import Deployed

CHANGE = "change"
"""The kind of document that announces a plan change."""

PREPARED = "prepared"
"""Where that document has the query with the new generation."""

HISTORY = "history"
"""The kind of document that tells what came of a plan change."""

GAIN = "gain"
"""The kind of document that tells how much of the cost a plan change has saved."""

PLACE = re.compile(r"([1-9][0-9]{0,8}) ")
"""How the keys of facts begin that have not got the first place: "2 promise lyon" is behind "promise lyon"."""


@dataclass(frozen=True)
class PlanMove:
    """A change of a plan between sites that is over.

    `asked` and `ended` are seconds since 1970. If it `is_done`, the plan called `generation` answers for results from
    `moment` on, in microseconds of event time; otherwise it was aborted `because` of something. `copied` are the bytes
    of streams and joins that were brought to other sites to fill windows. `predicted` is the share of the cost that
    was expected to be saved, by the figures before the change, and `measured` by those after it. A share below 0 means
    that the new plan costs more; None, that the figures are not known.
    """

    generation: int
    reason: str
    asked: float
    ended: float
    is_done: bool
    moment: int | None
    because: str
    copied: int = 0
    predicted: float | None = None
    measured: float | None = None

    @property
    def seconds(self) -> float:
        """How long it took until the old plan had ended."""
        return self.ended - self.asked


class ChangeLog:
    """The plan changes of all queries that are not over, and what was said about each."""

    def __init__(self, channels: Channels, rejections: Rejections | None = None) -> None:
        self._channels = channels
        self.rejections = rejections or Rejections()

    @property
    def rejected(self) -> int:
        """How many documents this program has found that say nothing of a plan change. Each is counted once."""
        return self.rejections.count

    def reject(self, change: Change, document: Mapping[str, Any], error: BraidError) -> None:
        """Warn of a change that is announced with what is no generation."""
        self.rejections.add(CHANGE, change.key, document, f"the plan change {change.key} is rejected: {error}")

    def begin(self, change: Change, prepared: Deployed) -> bool:
        """Announce a change, and the query with the generation that it has prepared, at once.

        False if there is a change to a generation of this number already.
        """
        if change.key not in self._channels.announced(CHANGE):
            # A dropped query of the same name may have left some.
            self._withdraw_facts(change)
        document = {**change.to_json(), PREPARED: prepared.to_json()}
        return self._channels.announce_new(CHANGE, change.key, document)

    def say(self, change: Change, fact: Fact) -> None:
        """Say something about a change, durably. What was said first counts.

        A document that says nothing does not count. It keeps its place, and the fact gets the next one. If the fact
        replaced it, the last of two programs that say a verdict would count, and not the first.
        """
        for place in count(1):
            if self.state(change).has_said(fact):
                return
            if self._channels.announce_new(_facts(change), _fact_key(place, fact), fact_to_json(fact)):
                return

    def states(self, query: str) -> Iterator[ChangeState]:
        """The changes of a query, with all that was said."""
        for change, _ in self._changes():
            if change.query == query:
                yield self.state(change)

    def prepared(self) -> Iterator[tuple[Change, Mapping[str, Any]]]:
        """Each change with the document of its query, as it was prepared. An earlier release announced that apart."""
        for change, document in self._changes():
            if isinstance(document.get(PREPARED), Mapping):
                yield change, document[PREPARED]

    def first_free(self, query: str, number: int) -> int:
        """The first number for a new generation, from this one on, for which there is no garbage in place of a change.

        It is not replaced: another program may begin a change to that generation at this moment.
        """
        documents = self._channels.announced(CHANGE)
        changes = {change.key for change, _ in self._among(documents)}
        while documents.is_damaged(_key(query, number)) or _key(query, number) in documents.keys() - changes:
            number += 1
        return number

    def _changes(self) -> Iterator[tuple[Change, Mapping[str, Any]]]:
        """Each change, and the document that announces it."""
        return self._among(self._channels.announced(CHANGE))

    def _among(self, documents: Announced) -> Iterator[tuple[Change, Mapping[str, Any]]]:
        """Each change among some documents."""
        for key, document in documents.items():
            try:
                change = Change.from_json({name: value for name, value in document.items() if name != PREPARED})
                if change.key != key:
                    raise ModelError(f"it announces {change.key}")
                yield change, document
            except ModelError as error:
                self.rejections.add(CHANGE, key, document, f"the plan change {key} is rejected: {error}")

    def under_way(self, query: str) -> ChangeState | None:
        """The change of a query that is not over, if there is one."""
        return next((state for state in self.states(query) if not state.phase.is_over), None)

    def of(self, change: Change) -> ChangeState | None:
        """What is known of a change that was begun; None if it is over and forgotten."""
        return next((state for state in self.states(change.query) if state.change == change), None)

    def state(self, change: Change) -> ChangeState:
        """What is known of a change now."""
        facts, kind = [], _facts(change)
        for key, document in self._channels.announced(kind).items():
            try:
                facts.append(_placed_fact(key, document))
            except ModelError as error:
                why = f"'{key}' of the plan change {change.key} is rejected: {error}"
                self.rejections.add(kind, key, document, why)
        return ChangeState(change).told(*(fact for _, fact in sorted(facts, key=lambda placed: placed[0])))

    def record(self, state: ChangeState, ended: float, copied: int) -> None:
        """Record the outcome of a change, for `history`, and the bytes that were copied for it."""
        change, verdict = state.change, state.verdict
        document = {
            "query": change.query,
            "generation": change.new,
            "reason": change.reason,
            "asked": change.asked,
            "ended": ended,
            "is_done": state.phase is Phase.DONE,
            "moment": state.moment,
            "because": "" if verdict is None else verdict.reason,
            "copied": copied,
            "predicted": change.predicted,
        }
        self._channels.announce_new(HISTORY, change.key, document)

    def measure(self, query: str, generation: int, gain: float) -> None:
        """Record what the change to a generation has saved, for `history`."""
        self._channels.announce(GAIN, _key(query, generation), {"query": query, "gain": gain})

    def history(self, query: str) -> list[PlanMove]:
        """The changes of a query that are over, oldest first."""
        gains = {key: document.get("gain") for key, document in self._channels.announced(GAIN).items()}
        moves = []
        for key, document in self._channels.announced(HISTORY).items():
            if document.get("query") == query:
                told = {name: document[name] for name in PlanMove.__annotations__ if name in document}
                try:
                    move = PlanMove(**{**told, "measured": gains.get(key)})
                except TypeError as error:
                    self.rejections.add(HISTORY, key, document, f"the outcome of {key} is rejected: {error}")
                    continue
                if key == _key(query, move.generation):
                    moves.append(move)
        return sorted(moves, key=lambda move: move.generation)

    def forget(self, query: str) -> None:
        """Forget all about a query that is dropped."""
        for state in list(self.states(query)):
            self.end(state)
        for kind in (HISTORY, GAIN):
            for key, document in self._channels.announced(kind).items():
                if document.get("query") == query:
                    self._channels.withdraw(kind, key)

    def end(self, state: ChangeState) -> None:
        """Forget a change. Facts that are left if this is cut short concern nobody: no generation has its number."""
        change = state.change
        self._channels.withdraw(CHANGE, change.key)
        self._withdraw_facts(change)

    def _withdraw_facts(self, change: Change) -> None:
        for key in self._channels.announced(_facts(change)):
            self._channels.withdraw(_facts(change), key)


def _key(query: str, generation: int) -> str:
    """The key of the change of a query to a generation, and of all that is told about it."""
    return f"{query} #{generation}"


def _facts(change: Change) -> str:
    return f"facts of {change.key}"


def _fact_key(place: int, fact: Fact) -> str:
    return fact_key(fact) if place == 1 else f"{place} {fact_key(fact)}"


def _placed_fact(key: str, document: Mapping[str, Any]) -> tuple[int, Fact]:
    """The fact that a document tells, and its place among those with the same key; `ModelError` if it tells none."""
    fact = fact_from_json(document)
    match = PLACE.match(key)
    place = 1 if match is None else int(match[1])
    if key != _fact_key(place, fact):
        raise ModelError(f"it tells '{fact_key(fact)}', which has a key of its own")
    return place, fact
