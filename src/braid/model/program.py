"""Site programs: the instructions that every plan is lowered to, and that the engine runs."""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanError
from braid.model.advertisement import Advertisement
from braid.model.checks import check, check_each, check_name
from braid.model.graph import AttributeClass
from braid.model.partitions import Partitioning
from braid.model.predicate import Predicate
from braid.model.query import Exclusion, Output, Query, Star
from braid.model.window import FOREVER, Now, Range, Window


@dataclass(frozen=True, slots=True)
class Guard:
    """Which heads an instruction applies to: those of some key partitions, those that start within an interval.

    `since` is included, `until` is not; the whole of event time and of the key space where nothing is said.
    """

    partitions: Partitioning | None = None
    since: int = -FOREVER
    until: int = FOREVER

    def __post_init__(self) -> None:
        check(self.partitions, Partitioning | None, "the partitions of a guard", PlanError)
        check(self.since, int, "the beginning of a guard", PlanError)
        check(self.until, int, "the end of a guard", PlanError)
        if self.since >= self.until:
            raise PlanError(f"a guard from {self.since} until {self.until} lets nothing through")


ALWAYS = Guard()


@dataclass(frozen=True, slots=True)
class Update:
    """Keep a window of a stream here."""

    stream: str

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of an update", PlanError)


@dataclass(frozen=True, slots=True)
class Filter:
    """Let only those rows of a stream go on that satisfy a predicate."""

    stream: str
    predicate: Predicate

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of a filter", PlanError)
        check(self.predicate, Predicate, "the condition of a filter", PlanError)


@dataclass(frozen=True, slots=True)
class Reuse:
    """Take the rows of a derived stream that another query makes here, under the names of this one.

    `names` has each stream in it by its alias there and here: they need not be called the same, and those of one query
    may be the other way round in another. `result` is what the derived stream is called from here on.
    """

    advertisement: Advertisement
    names: tuple[tuple[str, str], ...]
    result: str

    def __post_init__(self) -> None:
        check(self.advertisement, Advertisement, "what is reused", PlanError)
        check_name(self.result, "what a reused stream is called", PlanError)
        theirs, ours = (sorted(pair[side] for pair in self.names) for side in (0, 1))
        if theirs != sorted(self.advertisement.query.aliases) or len(set(ours)) < len(ours):
            raise PlanError(
                f"each stream of {self.advertisement} has one name here: give pairs for "
                f"{', '.join(self.advertisement.query.aliases)}, not {self.names}"
            )


@dataclass(frozen=True, slots=True)
class Narrow:
    """Let only those rows of a derived stream go on whose parts are alive together under shorter windows too.

    `windows` are the streams in it whose windows are shorter than those it was joined under. They begin as before
    and end sooner; so do the lifetimes of the rows that are left.
    """

    stream: str
    windows: tuple[tuple[str, Window], ...]

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream that is narrowed", PlanError)
        if not self.windows:
            raise PlanError(f"'{self.stream}' is narrowed by no window; leave the instruction out")
        for stream, window in self.windows:
            check_name(stream, "a stream with a shorter window", PlanError)
            check(window, Range | Now, f"the shorter window of '{stream}'", PlanError)


@dataclass(frozen=True, slots=True)
class Join:
    """Probe the window of `stream` with the rows of `probe`; the matches are the derived stream `result`.

    Rows match if they agree in all `keys`, satisfy all `predicates` and are alive together.
    """

    probe: str
    stream: str
    result: str
    keys: tuple[AttributeClass, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    guard: Guard = ALWAYS

    def __post_init__(self) -> None:
        for name in (self.probe, self.stream, self.result):
            check_name(name, "each stream of a join", PlanError)
        check_each(self.keys, AttributeClass, "the keys of a join", PlanError)
        check_each(self.predicates, Predicate, "the conditions of a join", PlanError)
        check(self.guard, Guard, "the guard of a join", PlanError)


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several streams as one: what a join yields, whichever of its inputs brought the last row of it."""

    streams: tuple[str, ...]
    result: str

    def __post_init__(self) -> None:
        check_each(self.streams, str, "the streams of a union", PlanError)
        check_name(self.result, "the result of a union", PlanError)
        if not self.streams:
            raise PlanError("a union is of at least one stream")


@dataclass(frozen=True, slots=True)
class Project:
    """Turn the rows of a stream into these columns."""

    stream: str
    result: str
    outputs: tuple[Output | Star, ...]

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of a projection", PlanError)
        check_name(self.result, "the result of a projection", PlanError)
        check_each(self.outputs, Output | Star, "the columns of a projection", PlanError)


@dataclass(frozen=True, slots=True)
class Exclude:
    """Let only those rows of a stream go on that no row of an excluded stream matches.

    Beside the columns of `result`, its rows have those that the exclusions compare, which end here.
    """

    stream: str
    result: str
    exclusions: tuple[Exclusion, ...]

    def __post_init__(self) -> None:
        check_name(self.stream, "the stream of a difference", PlanError)
        check_name(self.result, "the result of a difference", PlanError)
        check_each(self.exclusions, Exclusion, "what is excluded", PlanError)


@dataclass(frozen=True, slots=True)
class Ship:
    """Send the rows of a stream that a guard lets through, and its watermark, to another site."""

    stream: str
    site: str
    guard: Guard = ALWAYS

    def __post_init__(self) -> None:
        check_name(self.stream, "what is shipped", PlanError)
        check_name(self.site, "where something is shipped", PlanError)
        check(self.guard, Guard, "the guard of what is shipped", PlanError)


@dataclass(frozen=True, slots=True)
class Emit:
    """A stream is the result of a query."""

    stream: str
    query: str

    def __post_init__(self) -> None:
        check_name(self.stream, "what is emitted", PlanError)
        check(self.query, str, "the query of what is emitted", PlanError)


Instruction = Update | Filter | Reuse | Narrow | Join | Union | Project | Exclude | Ship | Emit


def reads(instruction: Instruction) -> tuple[str, ...]:
    """The streams of its own query whose rows an instruction takes."""
    if isinstance(instruction, Reuse):
        return ()
    if isinstance(instruction, Union):
        return instruction.streams
    return (instruction.probe if isinstance(instruction, Join) else instruction.stream,)


@dataclass(frozen=True)
class SiteProgram:
    """What one site does. Each instruction reads streams that the query has, that arrive, or that an earlier one made.

    `arriving` are the derived streams that other sites ship here. To run a program, its query must be bound.
    """

    query: Query
    instructions: tuple[Instruction, ...]
    arriving: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self.query, Query, "what a site program is for", PlanError)
        check_each(self.instructions, Instruction, "the instructions of a site", PlanError)
        check_each(self.arriving, str, "what arrives at a site", PlanError)
        known = {*self.query.aliases, *self.arriving}
        kept: set[str] = set()
        projected: set[str] = set()
        for instruction in self.instructions:
            for read in reads(instruction):
                if read not in known:
                    raise PlanError(f"{instruction} reads '{read}', which no earlier instruction makes")
            if isinstance(instruction, Update):
                kept.add(instruction.stream)
            if isinstance(instruction, Join) and instruction.stream not in kept:
                raise PlanError(f"{instruction} probes '{instruction.stream}', of which no window is kept here")
            if isinstance(instruction, Exclude) and instruction.stream not in projected:
                raise PlanError(
                    f"'{instruction.stream}' is excluded from, but nothing has been projected under that name"
                )
            if isinstance(instruction, Project | Exclude):
                projected.add(instruction.result)
            if isinstance(instruction, Emit) and instruction.stream not in projected:
                raise PlanError(f"'{instruction.stream}' is emitted, but nothing has been projected under that name")
            if isinstance(instruction, Reuse):
                for _, alias in instruction.names:
                    if alias not in self.query.aliases:
                        raise PlanError(f"'{alias}' of {instruction.advertisement} is no stream of this query")
            if isinstance(instruction, Reuse | Join | Union | Project | Exclude):
                if instruction.result in known:
                    raise PlanError(f"{instruction} makes '{instruction.result}', which is there already")
                known.add(instruction.result)
