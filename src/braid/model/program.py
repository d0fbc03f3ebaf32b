"""Site programs: every plan is lowered to these instructions, which the engine runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from braid.errors import PlanError
from braid.model.access import PATHS
from braid.model.advertisement import Advertisement
from braid.model.checks import check, check_each, check_name
from braid.model.graph import AttributeClass
from braid.model.partitions import Partitioning
from braid.model.predicate import Predicate
from braid.model.query import Output, Query, Star
from braid.model.window import FOREVER, Now, Range, Window


@dataclass(frozen=True, slots=True)
class Guard:
    """Which head rows an instruction applies to: by their key and by the start of their lifetime.

    `since` is included, `until` is not. The default is all keys and all of event time.
    """

    partitions: Partitioning | None = None
    since: int = -FOREVER
    until: int = FOREVER

    def __post_init__(self) -> None:
        check(self.partitions, Partitioning | None, "the partitions of a guard", PlanError)
        check(self.since, int, "the start of a guard", PlanError)
        check(self.until, int, "the end of a guard", PlanError)
        if self.since >= self.until:
            raise PlanError(f"a guard from {self.since} until {self.until} lets nothing through")


ALWAYS = Guard()
"""A guard that every row passes."""


@dataclass(frozen=True, slots=True)
class Update:
    """Keep the window of a stream at this site."""

    stream: str

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of an update", PlanError)


@dataclass(frozen=True, slots=True)
class Filter:
    """Drop the rows of a stream that do not satisfy a predicate."""

    stream: str
    predicate: Predicate

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of a filter", PlanError)
        check(self.predicate, Predicate, "the condition of a filter", PlanError)


@dataclass(frozen=True, slots=True)
class Reuse:
    """Read a derived stream that another query computes at this site.

    `names` maps the aliases of its streams in the other query to those in this one: the same stream may have another
    alias, and two queries may swap aliases. `result` is the name of the derived stream in this program.
    """

    advertisement: Advertisement
    names: tuple[tuple[str, str], ...]
    result: str

    def __post_init__(self) -> None:
        check(self.advertisement, Advertisement, "the advertisement to reuse", PlanError)
        check_name(self.result, "the name of a reused stream", PlanError)
        aliases = self.advertisement.query.aliases
        theirs = [pair[0] for pair in self.names]
        ours = [pair[1] for pair in self.names]
        if sorted(theirs) != sorted(aliases) or len(set(ours)) < len(ours):
            raise PlanError(
                f"each stream of {self.advertisement} needs one alias in this query: give pairs for "
                f"{', '.join(aliases)}, not {self.names}"
            )


@dataclass(frozen=True, slots=True)
class Narrow:
    """Drop the rows of a derived stream whose joined rows are not alive together under shorter windows.

    `windows` are the shorter windows, by stream. With them, lifetimes start as before and end earlier, also those of
    the rows that remain.
    """

    stream: str
    windows: tuple[tuple[str, Window], ...]

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream to narrow", PlanError)
        if not self.windows:
            raise PlanError(f"no window is given to narrow '{self.stream}' by; leave the instruction out")
        for stream, window in self.windows:
            check_name(stream, "a stream with a shorter window", PlanError)
            check(window, Range | Now, f"the shorter window of '{stream}'", PlanError)


@dataclass(frozen=True, slots=True)
class Join:
    """Probe the window of `stream` with the rows of `probe`; the matches are the derived stream `result`.

    Rows match if they are equal in all `keys`, satisfy all `predicates` and are alive together. `path` is the access
    path by which they are found; None for the default (see `model/access.py`).
    """

    probe: str
    stream: str
    result: str
    keys: tuple[AttributeClass, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    guard: Guard = ALWAYS
    path: str | None = None

    def __post_init__(self) -> None:
        for name in (self.probe, self.stream, self.result):
            check_name(name, "each stream of a join", PlanError)
        check_each(self.keys, AttributeClass, "the keys of a join", PlanError)
        check_each(self.predicates, Predicate, "the conditions of a join", PlanError)
        check(self.guard, Guard, "the guard of a join", PlanError)
        if self.path is not None and self.path not in PATHS:
            raise PlanError(f"the access path of a join is one of {', '.join(PATHS)}, not {self.path!r}")


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several streams as one stream: the results of a join, whichever of its inputs was the head."""

    streams: tuple[str, ...]
    result: str

    def __post_init__(self) -> None:
        check_each(self.streams, str, "the streams of a union", PlanError)
        check_name(self.result, "the result of a union", PlanError)
        if not self.streams:
            raise PlanError("a union needs at least one stream")


@dataclass(frozen=True, slots=True)
class Project:
    """Compute the output columns from the rows of a stream."""

    stream: str
    result: str
    outputs: tuple[Output | Star, ...]

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of a projection", PlanError)
        check_name(self.result, "the result of a projection", PlanError)
        check_each(self.outputs, Output | Star, "the columns of a projection", PlanError)


@dataclass(frozen=True, slots=True)
class Conclude:
    """Apply what comes after the inner joins of the query: its fixed joins, the conditions on them, existence tests.

    The rows of `stream` have the columns that this reads; those of `result` have the columns of the query.
    """

    stream: str
    result: str

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream to conclude", PlanError)
        check_name(self.result, "the result of a conclusion", PlanError)


@dataclass(frozen=True, slots=True)
class Ship:
    """Send the rows of a stream that pass the guard, and its watermark, to another site."""

    stream: str
    site: str
    guard: Guard = ALWAYS

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream to ship", PlanError)
        check_name(self.site, "the site to ship to", PlanError)
        check(self.guard, Guard, "the guard of a shipped stream", PlanError)


@dataclass(frozen=True, slots=True)
class Emit:
    """Emit the rows of a stream as the result of a query."""

    stream: str
    query: str

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream to emit", PlanError)
        check(self.query, str, "the query to emit for", PlanError)


Instruction = Update | Filter | Reuse | Narrow | Join | Union | Project | Conclude | Ship | Emit

Kind = TypeVar("Kind", Update, Filter, Reuse, Narrow, Join, Union, Project, Conclude, Ship, Emit)


def reads(instruction: Instruction) -> tuple[str, ...]:
    """The streams of its own query whose rows an instruction reads."""
    if isinstance(instruction, Reuse):
        return ()
    if isinstance(instruction, Union):
        return instruction.streams
    return (instruction.probe if isinstance(instruction, Join) else instruction.stream,)


def keep_windows(query: Query) -> Iterator[Instruction]:
    """Filter each stream, and keep its window: how the program of a site that has all streams begins."""
    for alias in query.aliases:
        for predicate in query.graph.selections_of(alias):
            yield Filter(alias, predicate)
        yield Update(alias)


@dataclass(frozen=True)
class SiteProgram:
    """The instructions for one site, in order.

    Each instruction reads streams of the query, streams that arrive, or results of earlier instructions. `arriving` are
    the derived streams that other sites ship here. To run a program, its query must be bound. `parts` are other
    programs for some partitions of one attribute class; the instructions apply to all other keys.
    """

    query: Query
    instructions: tuple[Instruction, ...]
    arriving: tuple[str, ...] = ()
    parts: tuple[tuple[Partitioning, SiteProgram], ...] = ()

    def __post_init__(self) -> None:
        check(self.query, Query, "the query of a site program", PlanError)
        check_each(self.instructions, Instruction, "the instructions of a site program", PlanError)
        check_each(self.arriving, str, "the streams arriving at a site", PlanError)
        for partition, program in self.parts:
            check(partition, Partitioning, "a part of the keys", PlanError)
            check(program, SiteProgram, "the program of a part", PlanError)
            if program.query != self.query or program.parts:
                raise PlanError("the program of a part is for the same query, and has no parts of its own")
        known = {*self.query.aliases, *self.arriving}
        windows: set[str] = set()
        projected: set[str] = set()
        for instruction in self.instructions:
            for stream in reads(instruction):
                if stream not in known:
                    raise PlanError(f"{instruction} reads '{stream}', which no earlier instruction makes")
            self._check_instruction(instruction, windows, projected)
            if isinstance(instruction, Update):
                windows.add(instruction.stream)
            if isinstance(instruction, Project | Conclude):
                projected.add(instruction.result)
            if isinstance(instruction, Reuse | Join | Union | Project | Conclude):
                if instruction.result in known:
                    raise PlanError(f"{instruction} makes '{instruction.result}', which exists already")
                known.add(instruction.result)

    def all_of(self, kind: type[Kind]) -> Iterator[Kind]:
        """The instructions of one kind, in order."""
        return (instruction for instruction in self.instructions if isinstance(instruction, kind))

    def _check_instruction(self, instruction: Instruction, windows: set[str], projected: set[str]) -> None:
        """Refuse an instruction that needs a window, a projection or a stream of the query that does not exist."""
        if isinstance(instruction, Join) and instruction.stream not in windows:
            raise PlanError(f"{instruction} probes '{instruction.stream}', but no earlier instruction keeps its window")
        if isinstance(instruction, Conclude) and instruction.stream not in projected:
            raise PlanError(f"a conclusion reads '{instruction.stream}', but no earlier instruction projects it")
        if isinstance(instruction, Emit) and instruction.stream not in projected:
            raise PlanError(f"'{instruction.stream}' is emitted, but no earlier instruction projects it")
        if isinstance(instruction, Reuse):
            for _, alias in instruction.names:
                if alias not in self.query.aliases:
                    raise PlanError(f"'{alias}' of {instruction.advertisement} is not a stream of this query")
