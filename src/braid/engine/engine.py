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

from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Words
from braid.engine.input.inlet import Inlet
from braid.engine.join.dataflow import Dataflow, JoinStep
from braid.engine.join.sampling import SAMPLED, PairCounts, Sampler
from braid.engine.join.track import Track
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.output.exclusion import TIME, ExclusionFilter
from braid.engine.segment import Segment, no_rows
from braid.engine.transition import BuildTrack, strategy_named
from braid.engine.window.join_state import JoinState
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
class JoinStateCounts:
    """How many combinations a plan keeps of some streams, and whether they are all there are."""

    kept: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """Everything counted since the start; `waiting` are the results of which it is not known yet if they stay."""

    streams: Mapping[str, StreamCounts]
    joins: tuple[JoinCounts, ...]
    emitted: int
    kept: Mapping[str, JoinStateCounts]
    waiting: int = 0


class Engine:
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
        self._transition = strategy_named(strategy).transition
        self._counts_rows = program.query.counts_rows
        self._released = -FOREVER
        self._horizon = -FOREVER
        self._emitted = 0
        self._inlets: Mapping[str, Inlet] = {}
        self._tracks = self._transition([], self._builder(program))
        dataflow = self._tracks[-1].dataflow
        self._inlets = dataflow.inlets
        self._sampler = Sampler(dataflow)
        self.schema: pa.Schema = dataflow.emitters[0].schema
        self._exclusion_filter: ExclusionFilter | None = None
        if program.query.exclusions:
            timed = event_time is not None
            self._exclusion_filter = ExclusionFilter(program.query, self.schema, timed=timed, hash_bits=hash_bits)
            self.schema = self._exclusion_filter.results

    @property
    def program(self) -> SiteProgram:
        """The program in use; while one gives way to another, the new one."""
        return self._tracks[-1].dataflow.program

    def change(self, program: SiteProgram) -> None:
        """Go on with another program for the same query; the windows stay as they are.

        If it keeps combinations that the old one did not, they are found in the way of the strategy.
        """
        if program.query != self.program.query:
            raise PlanError("a running site can change its plan, not its query")
        self._tracks = self._transition(self._tracks, self._builder(program))
        self._sampler = Sampler(self._tracks[-1].dataflow)

    def _builder(self, program: SiteProgram) -> BuildTrack:
        def build(kept: Mapping[frozenset[str], JoinState]) -> Track:
            track = Track(Dataflow(program, self._hash_bits, self._event_time, self._inlets, kept))
            self._forget_kept(track)
            return track

        return build

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """Take segments in; returns the results that are complete with them."""
        taken = list(segments)
        self._receive(taken)
        results: list[pa.RecordBatch] = []
        first_new = {alias: inlet.first_new for alias, inlet in self._inlets.items()}
        for track in self._tracks:
            results.extend(track.step(first_new))
        if self._exclusion_filter is not None:
            results = self._exclusion_filter.step(taken, results, self._needed_from(frozenset(), self._earliest()))
        self._emitted += sum(rows.num_rows for rows in results)
        return results

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take segments in whose results are out already: windows fill, nothing is probed."""
        taken = list(segments)
        self._receive(taken)
        if self._exclusion_filter is not None:
            self._exclusion_filter.restore(taken)
        # Combinations of these rows are missing from what the plan keeps, as after any change of plan.
        self._tracks = self._transition([], self._builder(self.program))

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
        return None if self._exclusion_filter is None else self._exclusion_filter.newly_waiting()

    def wait(self, waiting: pa.RecordBatch) -> None:
        """Take back what `newly_waiting` gave, after everything is restored, less what has been decided since."""
        assert self._exclusion_filter is not None
        self._exclusion_filter.wait(waiting)

    def _all_inlets(self) -> Mapping[str, Inlet]:
        return self._inlets if self._exclusion_filter is None else {**self._inlets, **self._exclusion_filter.inlets}

    @property
    def movable(self) -> bool:
        """Whether `state` tells everything; what waits for a watermark, or counts rows, is known by segments alone."""
        exclusion_filter = self._exclusion_filter
        return (
            not self._counts_rows and len(self._tracks) == 1 and (exclusion_filter is None or exclusion_filter.movable)
        )

    def state(self) -> State:
        """What a site of the same query and plan needs to go on from here: numbers and arrays, see `load`."""
        kept = {name: kept.state() for name, kept in self._tracks[-1].dataflow.kept.items()}
        exclusion_filter = None if self._exclusion_filter is None else self._exclusion_filter.state()
        streams = {alias: inlet.state() for alias, inlet in self._inlets.items()}
        return {"streams": streams, "kept": kept, "exclusion_filter": exclusion_filter}

    def load(self, state: State) -> None:
        """Go on where another site was; its arrays are used as they are, not copied."""
        for alias, inlet in self._inlets.items():
            inlet.load(state["streams"][alias])
        for name, kept in self._tracks[-1].dataflow.kept.items():
            kept.load(state["kept"][name])
        if self._exclusion_filter is not None:
            self._exclusion_filter.load(state["exclusion_filter"])

    def oldest_needed(self, alias: str) -> int:
        """The event time before which no row of a source is needed any more, as far as is known."""
        return self._all_inlets()[alias].oldest_needed()

    def counts(self) -> Counts:
        steps_by_stream = self._tracks[-1].dataflow.steps
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
            name: JoinStateCounts(len(kept.window), not kept.check_missing())
            for name, kept in self._tracks[-1].dataflow.kept.items()
        }
        waiting = 0 if self._exclusion_filter is None else self._exclusion_filter.waiting
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
        for kept in track.dataflow.kept.values():
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
