"""The engine: one site that runs a program on segments.

It does no I/O, reads no clock and starts no thread: segments in, rows out, and what it keeps in between is the
windows of its streams. Within a step all new rows enter their windows first; then each new row is the head of a
sequence of probes. By the delta rule a head sees the new rows of the streams before its own and only the old rows of
those after it, so that every combination is found exactly once, by the last of its rows in this order (see `Track`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

import pyarrow as pa

from braid.engine.assembly import Assembly, JoinStep
from braid.engine.columns import State
from braid.engine.compiled import Words
from braid.engine.difference import TIME, Difference
from braid.engine.hashing import FULL_HASH
from braid.engine.inlet import Inlet
from braid.engine.kept import Kept
from braid.engine.sampling import SAMPLED, PairCounts, Sampler
from braid.engine.segment import Segment, no_rows
from braid.engine.track import Track
from braid.engine.transition import Assemble, strategy_named
from braid.errors import PlanError
from braid.model.program import SiteProgram
from braid.model.window import FOREVER


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
    """How often `stream` was probed by `probe` since the plan began, and with how many matches."""

    probe: str
    stream: str
    probes: int
    matches: int


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """How many combinations a plan keeps of some streams, and whether they are all there are."""

    kept: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """Everything counted since the start; `waiting` are the results of which it is not known yet if they stay."""

    streams: Mapping[str, StreamCounts]
    joins: tuple[JoinCounts, ...]
    emitted: int
    kept: Mapping[str, KeptCounts]
    waiting: int = 0


class Site:
    """Runs a site program.

    `event_time` names a column to be added to the results: the time from which all rows of a result were alive.
    `strategy` is the way to go from one plan to another. `hash_bits` cuts the hashes of keys, to make collisions
    common in tests.
    """

    def __init__(
        self,
        program: SiteProgram,
        *,
        event_time: str | None = None,
        strategy: str = "jisc",
        hash_bits: int = FULL_HASH,
    ) -> None:
        self._event_time = TIME if event_time is None and program.query.exclusions else event_time
        self._hash_bits = hash_bits
        self._strategy = strategy_named(strategy)
        self._counts_rows = program.query.counts_rows
        self._released = -FOREVER
        self._horizon = -FOREVER
        self._emitted = 0
        self._inlets: Mapping[str, Inlet] = {}
        self._tracks = self._strategy([], self._assembler(program))
        assembly = self._tracks[-1].assembly
        self._inlets = assembly.inlets
        self._sampler = Sampler(assembly)
        self.schema: pa.Schema = assembly.emitters[0].schema
        self._difference: Difference | None = None
        if program.query.exclusions:
            timed = event_time is not None
            self._difference = Difference(program.query, self.schema, timed=timed, hash_bits=hash_bits)
            self.schema = self._difference.results

    @property
    def program(self) -> SiteProgram:
        """The program in use; while one gives way to another, the new one."""
        return self._tracks[-1].assembly.program

    def change(self, program: SiteProgram) -> None:
        """Go on with another program for the same query; the windows stay as they are.

        If it keeps combinations that the old one did not, they are found in the way of the strategy.
        """
        if program.query != self.program.query:
            raise PlanError("a running site can change its plan, not its query")
        self._tracks = self._strategy(self._tracks, self._assembler(program))
        self._sampler = Sampler(self._tracks[-1].assembly)

    def _assembler(self, program: SiteProgram) -> Assemble:
        def assemble(kept: Mapping[frozenset[str], Kept]) -> Track:
            track = Track(Assembly(program, self._hash_bits, self._event_time, self._inlets, kept))
            self._forget_kept(track)
            return track

        return assemble

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """Take segments in; returns the results that are complete with them."""
        taken = list(segments)
        self._receive(taken)
        results: list[pa.RecordBatch] = []
        first_new = {alias: inlet.first_new for alias, inlet in self._inlets.items()}
        for track in self._tracks:
            results.extend(track.step(first_new))
        if self._difference is not None:
            results = self._difference.step(taken, results, self._needed_from(frozenset(), self._earliest()))
        self._emitted += sum(rows.num_rows for rows in results)
        return results

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take segments in whose results are out already: windows fill, nothing is probed."""
        taken = list(segments)
        self._receive(taken)
        if self._difference is not None:
            self._difference.restore(taken)
        # Combinations of these rows are missing from what the plan keeps, as after any change of plan.
        self._tracks = self._strategy([], self._assembler(self.program))

    def finish(self) -> list[pa.RecordBatch]:
        """No more rows will come: returns the results that were still waiting for that."""
        return self.step(
            Segment(inlet.declaration.name, no_rows(inlet.declaration.schema), FOREVER)
            for inlet in self._all_inlets().values()
        )

    def newly_waiting(self) -> pa.RecordBatch | None:
        """Results that have come since this was last asked, and of which it is not known yet if they stay.

        Who keeps segments for `restore` keeps these for `wait`. The last column is their event time.
        """
        return None if self._difference is None else self._difference.newly_waiting()

    def wait(self, waiting: pa.RecordBatch) -> None:
        """Take back what `newly_waiting` gave, after everything is restored, less what has been decided since."""
        assert self._difference is not None
        self._difference.wait(waiting)

    def _all_inlets(self) -> Mapping[str, Inlet]:
        return self._inlets if self._difference is None else {**self._inlets, **self._difference.inlets}

    @property
    def movable(self) -> bool:
        """Whether `state` tells everything; what waits for a watermark, or counts rows, is known by segments alone."""
        difference = self._difference
        return not self._counts_rows and len(self._tracks) == 1 and (difference is None or difference.movable)

    def state(self) -> State:
        """What a site of the same query and plan needs to go on from here: numbers and arrays, see `load`."""
        kept = {name: kept.state() for name, kept in self._tracks[-1].assembly.kept.items()}
        difference = None if self._difference is None else self._difference.state()
        streams = {alias: inlet.state() for alias, inlet in self._inlets.items()}
        return {"streams": streams, "kept": kept, "difference": difference}

    def load(self, state: State) -> None:
        """Go on where another site was; its arrays are used as they are, not copied."""
        for alias, inlet in self._inlets.items():
            inlet.load(state["streams"][alias])
        for name, kept in self._tracks[-1].assembly.kept.items():
            kept.load(state["kept"][name])
        if self._difference is not None:
            self._difference.load(state["difference"])

    def oldest_needed(self, alias: str) -> int:
        """The event time before which no row of a source is needed any more, as far as is known."""
        return self._all_inlets()[alias].oldest_needed()

    def counts(self) -> Counts:
        steps_by_stream = self._tracks[-1].assembly.steps
        joins = (
            JoinCounts(name, step.matcher.name, step.matcher.probes, step.matcher.matches)
            for name, steps in steps_by_stream.items()
            for step in steps
            if isinstance(step, JoinStep)
        )
        streams = {
            alias: StreamCounts(inlet.received, inlet.late, inlet.untimed, inlet.entered, len(inlet.window))
            for alias, inlet in self._all_inlets().items()
        }
        kept = {
            name: KeptCounts(len(kept.window), not kept.check_missing())
            for name, kept in self._tracks[-1].assembly.kept.items()
        }
        waiting = 0 if self._difference is None else self._difference.waiting
        return Counts(streams, tuple(joins), self._emitted, kept, waiting)

    def sample(self, new: Mapping[str, int], most: int = SAMPLED) -> tuple[PairCounts, ...]:
        """How rows match every window they are tied to, whatever the plan, by a few of so many new ones of each."""
        return self._sampler.sample(new, most)

    def key_words(self, new: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        """The key words of so many new rows, by source and attribute class, in parts; good until the next step."""
        return self._sampler.key_words(new)

    def _receive(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            for inlet in self._inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        self._enter()

    def _enter(self) -> None:
        """Rows that nothing can reach any more leave the windows, new rows enter them."""
        before = None
        if self._counts_rows:
            self._horizon, before = self._released, min(inlet.watermark for inlet in self._inlets.values())
            self._released = before
        for track in self._tracks:
            self._forget_kept(track)
        earliest = self._earliest()
        for alias, inlet in self._inlets.items():
            renaming = inlet.enter(self._needed_from({alias}, earliest), before)
            if renaming is not None:
                for track in self._tracks:
                    track.rename(alias, renaming)
        self._tracks = [track for track in self._tracks if not track.is_over()]

    def _forget_kept(self, track: Track) -> None:
        earliest = self._earliest()
        for kept in track.assembly.kept.values():
            kept.forget(self._needed_from(frozenset(kept.aliases), earliest))

    def _earliest(self) -> dict[str, int]:
        """Where rows of each stream start that are not in its window yet."""
        return {alias: inlet.earliest for alias, inlet in self._inlets.items()}

    def _needed_from(self, streams: Set[str], earliest: Mapping[str, int]) -> int:
        """Where rows start that have yet to probe windows or combinations of these streams."""
        if self._counts_rows:
            return self._horizon
        # A row is needed while some other stream may still bring a row that starts before its end.
        return min((start for alias, start in earliest.items() if alias not in streams), default=FOREVER)
