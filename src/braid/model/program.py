"""Site programs: the instructions that every plan is lowered to, and that the engine runs."""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanError
from braid.model.graph import AttributeClass
from braid.model.predicate import Predicate
from braid.model.query import Output, Query
from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class Partitions:
    """Some of the `count` hash partitions of the key space of an attribute class."""

    attribute_class: AttributeClass
    count: int
    members: frozenset[int]

    def __post_init__(self) -> None:
        if self.count < 1 or not all(0 <= member < self.count for member in self.members):
            raise PlanError(f"partitions are numbered 0 to {self.count - 1}, not {sorted(self.members)}")


@dataclass(frozen=True, slots=True)
class Guard:
    """Which heads an instruction applies to: those of some key partitions, those that start within an interval.

    `since` is included, `until` is not; the whole of event time and of the key space where nothing is said.
    """

    partitions: Partitions | None = None
    since: int = -FOREVER
    until: int = FOREVER

    def __post_init__(self) -> None:
        if self.since >= self.until:
            raise PlanError(f"a guard from {self.since} until {self.until} lets nothing through")


ALWAYS = Guard()


@dataclass(frozen=True, slots=True)
class Update:
    """Keep a window of a stream here."""

    stream: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Let only those rows of a stream go on that satisfy a predicate."""

    stream: str
    predicate: Predicate


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


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several streams as one: what a join yields, whichever of its inputs brought the last row of it."""

    streams: tuple[str, ...]
    result: str


@dataclass(frozen=True, slots=True)
class Project:
    """Turn the rows of a stream into these columns."""

    stream: str
    result: str
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Ship:
    """Send a stream and its watermark to another site."""

    stream: str
    site: str


@dataclass(frozen=True, slots=True)
class Emit:
    """A stream is the result of a query."""

    stream: str
    query: str


Instruction = Update | Filter | Join | Union | Project | Ship | Emit


def reads(instruction: Instruction) -> tuple[str, ...]:
    """The streams whose rows an instruction takes."""
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
        known = {*self.query.aliases, *self.arriving}
        kept: set[str] = set()
        for instruction in self.instructions:
            for read in reads(instruction):
                if read not in known:
                    raise PlanError(f"{instruction} reads '{read}', which no earlier instruction makes")
            if isinstance(instruction, Update):
                kept.add(instruction.stream)
            if isinstance(instruction, Join) and instruction.stream not in kept:
                raise PlanError(f"{instruction} probes '{instruction.stream}', of which no window is kept here")
            if isinstance(instruction, Join | Union | Project):
                if instruction.result in known:
                    raise PlanError(f"{instruction} makes '{instruction.result}', which is there already")
                known.add(instruction.result)
