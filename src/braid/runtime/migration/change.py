"""A plan change between sites: what is said about it, and what follows from what was said.

Each party says a thing once, and it stays said: losing a message, repeating it or being late with it changes nothing.

1. *Prepare.* The sites of the new generation start, and read the intakes from further back. Each says that it is
   **ready** when it has read what was there when the change began.
2. *Agree.* When all are ready, the coordinator says **go**; until then it may say **abort**. Then each site of the old
   generation that gives results **promises** to give none from some event time on, later than all it has given. The
   latest of these promises is the moment of the change. A site that has promised publishes nothing from its promise on
   before it knows the moment.
3. *Retire.* Each site of the old generation that gives results says that it has **answered** when its watermark has
   passed the moment. When all have, the sites of the old generation stop it, and each says that it has **stopped**.

If a site dies before go, the old plan goes on. After go, the change is completed when all sites are back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from sys import float_info
from typing import Any

from braid.errors import ModelError
from braid.model.checks import shown
from braid.model.window import FOREVER

LARGEST = float_info.max
"""No number is larger."""


class Phase(StrEnum):
    """How far a change is."""

    PREPARING = "preparing"
    READY = "ready"
    PROMISING = "promising"
    SWITCHING = "switching"
    DONE = "done"
    ABORTED = "aborted"

    @property
    def is_over(self) -> bool:
        return self in (Phase.DONE, Phase.ABORTED)


@dataclass(frozen=True)
class Change:
    """A change of a query from generation `old` to generation `new`.

    `preparing` are the sites of the new generation, `answering` those of the old one that give results. The channels
    that the new one reads hold all that it needs for results from `since` on. Its sites are ready when their inputs
    have reached `level`. `asked` is when it was asked for, in seconds since 1970. `predicted` is the share of the cost
    that it is expected to save, if that is known, and `copied` the bytes of streams and joins that
    are there and are brought to other sites to fill windows.
    """

    query: str
    old: int
    new: int
    preparing: tuple[str, ...]
    answering: tuple[str, ...]
    since: int = -FOREVER
    level: int = -FOREVER
    reason: str = ""
    asked: float = 0.0
    predicted: float | None = None
    copied: int = 0

    @property
    def key(self) -> str:
        return f"{self.query} #{self.new}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> Change:
        """The change that a document tells of; `ModelError` if it tells of none.

        >>> Change.from_json({**Change("gates", 1, 2, ("nice",), ("paris",)).to_json(), "answering": []})
        Traceback (most recent call last):
        braid.errors.ModelError: 'answering' of a plan change must be the names of sites, not []
        """
        if not isinstance(content, Mapping):
            raise ModelError(f"a plan change must be an object, not {shown(content)}")
        for name, (is_right, what) in _CHANGE_FIELDS.items():
            if name in content and not is_right(content[name]):
                raise ModelError(f"'{name}' of a plan change must be {what}, not {shown(content[name])}")
        try:
            sites = {"preparing": tuple(content["preparing"]), "answering": tuple(content["answering"])}
            change = cls(**{**content, **sites})
        except (KeyError, TypeError) as error:
            raise ModelError(f"{shown(content)} is no plan change: {error}") from error
        if change.new <= change.old:
            raise ModelError(f"a plan change must lead to a later generation than {change.old}, not to {change.new}")
        return change


@dataclass(frozen=True)
class Ready:
    """A site of the new generation has filled its windows."""

    site: str


@dataclass(frozen=True)
class Verdict:
    """The coordinator says go, or that the change is aborted, and why."""

    go: bool
    reason: str = ""


@dataclass(frozen=True)
class Promise:
    """A site of the old generation will give no result from an event time on."""

    site: str
    until: int


@dataclass(frozen=True)
class Answered:
    """A site of the old generation has given all results before the moment of the change."""

    site: str


@dataclass(frozen=True)
class Stopped:
    """A site has stopped what it did for the generation that the change has ended."""

    site: str


Fact = Ready | Verdict | Promise | Answered | Stopped

_KINDS: dict[str, type[Fact]] = {
    "ready": Ready,
    "verdict": Verdict,
    "promise": Promise,
    "answered": Answered,
    "stopped": Stopped,
}


def fact_key(fact: Fact) -> str:
    """What a fact is about: of the same thing only one is ever said.

    >>> fact_key(Promise("paris", 7)), fact_key(Verdict(True))
    ('promise paris', 'verdict')
    """
    kind = next(name for name, kind in _KINDS.items() if isinstance(fact, kind))
    return kind if isinstance(fact, Verdict) else f"{kind} {fact.site}"


def fact_to_json(fact: Fact) -> dict[str, Any]:
    return {"kind": fact_key(fact).split(" ")[0], **asdict(fact)}


def fact_from_json(content: Any) -> Fact:
    """The fact that a document tells; `ModelError` if it tells none.

    >>> fact_from_json({"kind": "promise", "site": "paris", "until": "soon"})
    Traceback (most recent call last):
    braid.errors.ModelError: {'kind': 'promise', 'site': 'paris', 'until': 'soon'} tells nothing of a plan change
    """
    try:
        fact = _KINDS[content["kind"]](**{name: value for name, value in content.items() if name != "kind"})
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{shown(content)} tells nothing of a plan change") from error
    if isinstance(fact, Verdict):
        is_right = isinstance(fact.go, bool) and isinstance(fact.reason, str)
    else:
        is_right = isinstance(fact.site, str)
    if not is_right or (isinstance(fact, Promise) and not _is_event_time(fact.until)):
        raise ModelError(f"{shown(content)} tells nothing of a plan change")
    return fact


def _are_sites(value: Any) -> bool:
    """Whether a value is a list of sites: each once, and at least one."""
    is_list = isinstance(value, list | tuple) and all(isinstance(site, str) and site for site in value)
    return is_list and 0 < len(value) == len(set(value))


def _is_generation(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= FOREVER


def _is_real(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_event_time(value: Any) -> bool:
    """Whether a value is a moment in microseconds."""
    return _is_number(value) and -FOREVER <= value <= FOREVER


_CHANGE_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "query": (lambda value: isinstance(value, str), "the name of a query"),
    "old": (_is_generation, "the number of a generation"),
    "new": (_is_generation, "the number of a generation"),
    "preparing": (_are_sites, "the names of sites"),
    "answering": (_are_sites, "the names of sites"),
    "since": (_is_event_time, "an event time"),
    "level": (_is_event_time, "an event time"),
    "reason": (lambda value: isinstance(value, str), "a text"),
    "asked": (_is_real, "a time"),
    "predicted": (lambda value: value is None or _is_real(value), "a share"),
    "copied": (_is_number, "a number of bytes"),
}
"""What each field of a plan change must be, and how that is said."""


@dataclass(frozen=True)
class ChangeState:
    """A change, with all facts about it that one party knows."""

    change: Change
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def told(self, *facts: Fact) -> ChangeState:
        """The same with more facts. What was said first counts."""
        known = dict(self.facts)
        for fact in facts:
            known.setdefault(fact_key(fact), fact)
        return replace(self, facts=known)

    @property
    def verdict(self) -> Verdict | None:
        verdict = self.facts.get("verdict")
        return verdict if isinstance(verdict, Verdict) else None

    @property
    def promises(self) -> dict[str, int]:
        return {fact.site: fact.until for fact in self.facts.values() if isinstance(fact, Promise)}

    @property
    def moment(self) -> int | None:
        """The event time from which on the new generation answers; None as long as it is not agreed on."""
        promises = self.promises
        return max(promises.values()) if all(site in promises for site in self.change.answering) else None

    @property
    def phase(self) -> Phase:
        verdict = self.verdict
        if verdict is not None and not verdict.go:
            return Phase.ABORTED
        if verdict is None:
            return Phase.READY if self._all(Ready, self.change.preparing) else Phase.PREPARING
        if self.moment is None:
            return Phase.PROMISING
        return Phase.DONE if self._all(Answered, self.change.answering) else Phase.SWITCHING

    @property
    def awaited(self) -> tuple[str, ...]:
        """The sites that have to say something before the change gets to its next phase."""
        if self.phase is Phase.PREPARING:
            return self._silent(Ready, self.change.preparing)
        if self.phase is Phase.PROMISING:
            return self._silent(Promise, self.change.answering)
        return self._silent(Answered, self.change.answering) if self.phase is Phase.SWITCHING else ()

    def _all(self, kind: type[Ready | Answered | Stopped], sites: Iterable[str]) -> bool:
        return not self._silent(kind, sites)

    def _silent(self, kind: type[Ready | Promise | Answered | Stopped], sites: Iterable[str]) -> tuple[str, ...]:
        """Those of some sites that have not said a thing."""
        said = {fact.site for fact in self.facts.values() if isinstance(fact, kind)}
        return tuple(site for site in sites if site not in said)

    @property
    def loser(self) -> int:
        """The generation that ends with the change: the new one if it was aborted."""
        return self.change.new if self.phase is Phase.ABORTED else self.change.old

    def all_stopped(self, sites: Iterable[str]) -> bool:
        """Whether all of these sites have stopped the generation that the change has ended."""
        return self._all(Stopped, sites)

    def has_said(self, fact: Fact) -> bool:
        return fact_key(fact) in self.facts

    def ready(self, site: str, reached: int) -> Ready | None:
        """What a site of the new generation has to say now that its inputs have come so far."""
        fact = Ready(site)
        is_news = site in self.change.preparing and not self.has_said(fact) and not self.phase.is_over
        return fact if is_news and reached >= self.change.level else None

    def answered(self, site: str, reached: int) -> Answered | None:
        """What a site of the old generation has to say now that its results have come so far."""
        fact = Answered(site)
        is_news = site in self.change.answering and not self.has_said(fact)
        return fact if is_news and self.moment is not None and reached >= self.moment else None

    def must_promise(self, site: str) -> bool:
        """Whether a site has to promise now."""
        has_promised = site in self.promises
        return site in self.change.answering and not has_promised and self.phase is Phase.PROMISING

    def decides(self) -> Verdict | None:
        """What the coordinator has to say, if it wants the change."""
        return Verdict(go=True) if self.phase is Phase.READY else None
