"""The engine: one site that runs a program on segments.

It does no I/O, reads no clock and starts no thread: segments in, rows out, and what it keeps in between is the
windows of its streams. Within a step all new rows enter their windows first; then each new row is the head of a
sequence of probes. By the delta rule a head sees the new rows of the streams before its own and only the old rows of
those after it, so that every combination is found exactly once, by the last of its rows in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.assembly import Assembly, EmitStep, JoinStep
from braid.engine.columns import State
from braid.engine.combination import Combinations, heads
from braid.engine.compiled import Words
from braid.engine.hashing import FULL_HASH, combine_words
from braid.engine.sampling import SAMPLED, PairCounts, Sampler
from braid.engine.segment import Segment, no_rows
from braid.errors import PlanError
from braid.model.program import ALWAYS, Guard, SiteProgram
from braid.model.window import FOREVER

HEADS_AT_ONCE = 1 << 15
"""Heads go through their joins in pieces of this many, so that what they touch stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """What has become of the rows of one source: how many came, entered their window, and are in it now."""

    received: int
    late: int
    untimed: int
    entered: int
    kept: int


@dataclass(frozen=True, slots=True)
class JoinCounts:
    """How often the window of `stream` was probed by `probe`, and with how many matches."""

    probe: str
    stream: str
    probes: int
    matches: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Everything counted since the start."""

    streams: Mapping[str, StreamCounts]
    joins: tuple[JoinCounts, ...]
    emitted: int


class Site:
    """Runs a site program.

    `event_time` names a column to be added to the results: the time from which all rows of a result were alive.
    `hash_bits` cuts the hashes of keys, to make collisions common in tests.
    """

    def __init__(self, program: SiteProgram, *, event_time: str | None = None, hash_bits: int = FULL_HASH) -> None:
        self._event_time = event_time
        self._hash_bits = hash_bits
        self._counts_rows = program.query.counts_rows
        self._released = -FOREVER
        self._adopt(Assembly(program, hash_bits, event_time))

    def change(self, program: SiteProgram) -> None:
        """Go on with another program for the same query; the windows stay as they are."""
        if program.query != self.program.query:
            raise PlanError("a running site can change its plan, not its query")
        self._adopt(Assembly(program, self._hash_bits, self._event_time, self._inlets))

    def _adopt(self, assembly: Assembly) -> None:
        self.program = assembly.program
        self._inlets = assembly.inlets
        self._steps = assembly.steps
        self._numbers = assembly.numbers
        self._emitters = assembly.emitters
        self._sampler = Sampler(assembly)
        self.schema: pa.Schema = self._emitters[0].schema

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """Take segments in; returns the results that are complete with them."""
        self._receive(segments)
        results: list[pa.RecordBatch] = []
        limits = {alias: inlet.first_new for alias, inlet in self._inlets.items()}
        for alias, inlet in self._inlets.items():
            for first in range(inlet.first_new, inlet.window.head, HEADS_AT_ONCE):
                last = min(first + HEADS_AT_ONCE, inlet.window.head)
                results.extend(self._follow(alias, heads(alias, inlet.window, first, last), limits))
            limits[alias] = inlet.window.head
        for emitter in self._emitters:
            results.extend(emitter.flush())
        return results

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take segments in whose results are out already: windows fill, nothing is probed."""
        self._receive(segments)

    def finish(self) -> list[pa.RecordBatch]:
        """No more rows will come: returns the results that were still waiting for that."""
        return self.step(
            Segment(inlet.declaration.name, no_rows(inlet.declaration.schema), FOREVER)
            for inlet in self._inlets.values()
        )

    @property
    def movable(self) -> bool:
        """Whether `state` tells everything; what waits for a watermark, or counts rows, is known by segments alone."""
        return not self._counts_rows

    def state(self) -> State:
        """What a site of the same query needs to go on from here: numbers and arrays, see `load`."""
        return {alias: inlet.state() for alias, inlet in self._inlets.items()}

    def load(self, state: State) -> None:
        """Go on where another site was; its arrays are used as they are, not copied."""
        for alias, inlet in self._inlets.items():
            inlet.load(state[alias])

    def oldest_needed(self, alias: str) -> int:
        """The event time before which no row of a source is needed any more, as far as is known."""
        return self._inlets[alias].oldest_needed()

    def counts(self) -> Counts:
        joins = (
            JoinCounts(name, step.matcher.alias, step.matcher.probes, step.matcher.matches)
            for name, steps in self._steps.items()
            for step in steps
            if isinstance(step, JoinStep)
        )
        streams = {
            alias: StreamCounts(inlet.received, inlet.late, inlet.untimed, inlet.entered, len(inlet.window))
            for alias, inlet in self._inlets.items()
        }
        return Counts(streams, tuple(joins), sum(emitter.emitted for emitter in self._emitters))

    def heads(self) -> dict[str, int]:
        """The id that the next row of each source will get."""
        return {alias: inlet.window.head for alias, inlet in self._inlets.items()}

    def sample(self, since: Mapping[str, int], most: int = SAMPLED) -> tuple[PairCounts, ...]:
        """How rows match every window they are tied to, whatever the plan, by a few of those from an id on."""
        return self._sampler.sample(since, most)

    def key_words(self, since: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        """The key words of rows from an id on, by source and attribute class."""
        return self._sampler.key_words(since)

    def _receive(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            for inlet in self._inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        self._enter()

    def _enter(self) -> None:
        """Rows that nothing can reach any more leave the windows, new rows enter them."""
        if self._counts_rows:
            released, self._released = self._released, min(inlet.watermark for inlet in self._inlets.values())
            for inlet in self._inlets.values():
                inlet.enter(released, self._released)
            return
        for alias, inlet in self._inlets.items():
            # A row is needed while some other stream may still bring a row that starts before its end.
            others = [other.watermark for name, other in self._inlets.items() if name != alias]
            inlet.enter(min(others, default=FOREVER))

    def _follow(self, name: str, rows: Combinations, limits: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """Take combinations along every instruction that reads the stream they belong to."""
        for step in self._steps[name]:
            if isinstance(step, EmitStep):
                yield from step.emitter.add(rows)
                continue
            probing = self._guarded(rows, step.guard)
            for matcher in step.prefilter:
                probing = matcher.having_any(probing, limits[matcher.alias])
            for matches in step.matcher.matches_of(probing, limits[step.matcher.alias]):
                yield from self._follow(step.result, matches, limits)

    def _guarded(self, rows: Combinations, guard: Guard) -> Combinations:
        if guard is ALWAYS:
            return rows
        passed = (rows.starts >= guard.since) & (rows.starts < guard.until)
        if guard.partitions is not None:
            number = self._numbers[guard.partitions.attribute_class]
            hashes = combine_words([rows.words(rows.alias, number)]).view(np.uint64)
            partitions = hashes % np.uint64(guard.partitions.count)
            passed &= np.isin(partitions, list(guard.partitions.members))
        return rows.take(np.flatnonzero(passed))
