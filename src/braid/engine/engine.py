"""The engine: runs the program of one site on segments.

It does no I/O, reads no clock and starts no thread. Segments go in, result rows come out; in between it holds the
windows of its streams. In a step all new rows enter their windows first. Then each new row is the head of a probe
sequence. By the delta rule a head sees the new rows of streams before its own in the order of processing, but only the
old rows of streams after it. So every combination is found exactly once, by the last of its rows in this order (see
`Track`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Words
from braid.engine.counts import Counts, JoinStateCounts, StreamCounts
from braid.engine.input.inlet import Inlet
from braid.engine.join.lanes import Lanes, StateKey
from braid.engine.join.sampling import MOST_SAMPLED, Fanout, Sampler
from braid.engine.join.track import Track
from braid.engine.join.trial import Trial
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.output.exclusion import TIME, ExclusionFilter
from braid.engine.segment import Segment, no_rows
from braid.engine.transition import BuildTrack, strategy_named
from braid.engine.window.join_state import JoinState
from braid.errors import PlanError
from braid.model.program import SiteProgram
from braid.model.window import FOREVER


class Engine:
    """Runs a site program.

    `event_time` names a column to add to the results: the time from which all rows of a result were alive.
    `strategy` names the transition strategy for plan changes. `hash_bits` cuts the hashes of keys, so that tests can
    make collisions common.
    """

    def __init__(
        self,
        program: SiteProgram,
        *,
        event_time: str | None = None,
        strategy: str = "jisc",
        hash_bits: int = FULL_HASH,
    ) -> None:
        # Exclusions need the event time of results, even if the results do not show it.
        self._event_time = TIME if event_time is None and program.query.exclusions else event_time
        self._hash_bits = hash_bits
        self._transition = strategy_named(strategy).transition
        self._counts_rows = program.query.counts_rows
        self._released = -FOREVER
        """In queries that count rows: rows that start before this have entered their windows."""
        self._horizon = -FOREVER
        """In queries that count rows: the value of `_released` before the current step."""
        self._emitted = 0
        self._inlets: Mapping[str, Inlet] = {}
        self._against: SiteProgram | None = None
        self._tracks = self._transition([], self._builder(program))
        dataflow = self._lanes.rest
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
        """The program in use; during a transition, the new one."""
        return self._lanes.program

    @property
    def _lanes(self) -> Lanes:
        """The lanes of the program in use."""
        return self._tracks[-1].lanes

    def change(self, program: SiteProgram, against: SiteProgram | None = None) -> None:
        """Continue with another program for the same query; the windows stay as they are.

        The strategy decides how the join states that only the new program has are filled. If `against` is given, the
        new program is on trial: in each step it takes the new rows only as long as that does not cost more than
        `against`, which takes the others. Programs with join states are not tried out: they simply take over.
        """
        if program.query != self.program.query or (against is not None and against.query != program.query):
            raise PlanError("a running engine can change its plan, not its query")
        self._against = against
        self._tracks = self._transition(self._tracks, self._builder(program))
        self._begin_trial()
        self._sampler = Sampler(self._lanes.rest)

    def _begin_trial(self) -> None:
        """Let the newest track try its program out, unless several tracks run or a program keeps join states."""
        track = self._tracks[-1]
        if self._against is None or len(self._tracks) > 1 or track.join_states:
            return
        old = Lanes(self._against, self._hash_bits, self._event_time, self._inlets)
        if not old.join_states:
            track.trial = Trial(old, track.lanes)

    def _builder(self, program: SiteProgram) -> BuildTrack:
        def build(join_states: Mapping[StateKey, JoinState]) -> Track:
            track = Track(Lanes(program, self._hash_bits, self._event_time, self._inlets, join_states))
            self._expire_combinations(track)
            return track

        return build

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """Take segments in; returns the results that are complete with them."""
        segments = list(segments)
        self._receive(segments)
        results: list[pa.RecordBatch] = []
        first_new = {alias: inlet.first_new for alias, inlet in self._inlets.items()}
        for track in self._tracks:
            results.extend(track.step(first_new))
        if self._exclusion_filter is not None:
            horizon = self._needed_from(frozenset(), self._earliest())
            results = self._exclusion_filter.step(segments, results, horizon)
        self._emitted += sum(rows.num_rows for rows in results)
        return results

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take segments in whose results were emitted earlier: they fill the windows, but probe nothing."""
        segments = list(segments)
        self._receive(segments)
        if self._exclusion_filter is not None:
            self._exclusion_filter.restore(segments)
        # Combinations of these rows are missing from the join states, as after any plan change.
        self._tracks = self._transition([], self._builder(self.program))
        self._begin_trial()

    def finish(self) -> list[pa.RecordBatch]:
        """No more rows will come: returns the results that were still waiting for a watermark."""
        return self.step(
            Segment(inlet.declaration.name, no_rows(inlet.declaration.schema), FOREVER)
            for inlet in self._all_inlets().values()
        )

    def newly_waiting(self) -> pa.RecordBatch | None:
        """Results found since the last call that a row still to come may exclude; None if the query excludes nothing.

        A caller that stores segments for `restore` stores these for `wait`. The last column is their event time.
        """
        return None if self._exclusion_filter is None else self._exclusion_filter.newly_waiting()

    def wait(self, waiting: pa.RecordBatch) -> None:
        """Take back results of `newly_waiting`, after everything is restored; those decided since are dropped."""
        assert self._exclusion_filter is not None
        self._exclusion_filter.wait(waiting)

    def _all_inlets(self) -> Mapping[str, Inlet]:
        return self._inlets if self._exclusion_filter is None else {**self._inlets, **self._exclusion_filter.inlets}

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. If windows count rows, or two plans run, rebuild the engine from segments."""
        if self._counts_rows or len(self._tracks) > 1:
            return False
        return self._exclusion_filter is None or self._exclusion_filter.movable

    def state(self) -> State:
        """Everything that another engine with the same query and plan needs to continue from here (see `load`)."""
        join_states = {name: join_state.state() for name, join_state in self._join_states.items()}
        exclusion_filter = None if self._exclusion_filter is None else self._exclusion_filter.state()
        streams = {alias: inlet.state() for alias, inlet in self._inlets.items()}
        return {"streams": streams, "join_states": join_states, "exclusion_filter": exclusion_filter}

    def load(self, state: State) -> None:
        """Continue from the state of another engine; its arrays are used as they are, not copied."""
        for alias, inlet in self._inlets.items():
            inlet.load(state["streams"][alias])
        for name, join_state in self._join_states.items():
            join_state.load(state["join_states"][name])
        if self._exclusion_filter is not None:
            self._exclusion_filter.load(state["exclusion_filter"])

    @property
    def _join_states(self) -> Mapping[str, JoinState]:
        """The join states of the current plan."""
        return self._lanes.named_join_states

    def oldest_needed(self, alias: str) -> int:
        """The event time before which no row of a source is needed any more, as far as is known."""
        return self._all_inlets()[alias].oldest_needed()

    def counts(self) -> Counts:
        track = self._tracks[-1]
        joins = [counts for lanes in track.all_lanes for counts in lanes.counts()]
        streams = {
            alias: StreamCounts(inlet.received, inlet.late, inlet.untimed, inlet.entered, len(inlet.window))
            for alias, inlet in self._all_inlets().items()
        }
        join_states = {
            name: JoinStateCounts(len(join_state.window), not join_state.check_missing())
            for name, join_state in self._join_states.items()
        }
        waiting = sum(inlet.waiting for inlet in self._inlets.values())
        if self._exclusion_filter is not None:
            waiting += self._exclusion_filter.waiting
        trials = {} if track.trial is None else track.trial.counts()
        return Counts(streams, tuple(joins), self._emitted, join_states, waiting, trials)

    def sample(self, new: Mapping[str, int], most: int = MOST_SAMPLED) -> tuple[Fanout, ...]:
        """How many combinations new rows make with each set of other streams, whatever the plan.

        `new` is the number of new rows of each stream; at most `most` rows of each are sampled.
        """
        return self._sampler.sample(new, most)

    @property
    def sample_cost(self) -> int:
        """About the work of `sample`, in probes and candidates."""
        return self._sampler.cost

    def key_words(self, new: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        """The key words of the new rows (`new` of each stream), by source and attribute class.

        Words of one class may come in two arrays. The arrays are valid until the next step.
        """
        return self._sampler.key_words(new)

    def _receive(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            for inlet in self._inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        self._enter()

    def _enter(self) -> None:
        """Expired rows leave the windows, then new rows enter them."""
        before = None
        if self._counts_rows:
            before = min(inlet.watermark for inlet in self._inlets.values())
            self._horizon = self._released
            self._released = before
        for track in self._tracks:
            self._expire_combinations(track)
        earliest = self._earliest()
        for alias, inlet in self._inlets.items():
            renaming = inlet.enter(self._needed_from({alias}, earliest), before)
            if renaming is not None:
                for track in self._tracks:
                    track.rename(alias, renaming)
        self._tracks = [track for track in self._tracks if not track.is_over()]

    def _expire_combinations(self, track: Track) -> None:
        earliest = self._earliest()
        for join_state in track.join_states.values():
            join_state.forget(self._needed_from(frozenset(join_state.aliases), earliest))

    def _earliest(self) -> dict[str, int]:
        """For each stream, the earliest start of a row that is not in its window yet."""
        return {alias: inlet.earliest for alias, inlet in self._inlets.items()}

    def _needed_from(self, streams: Set[str], earliest: Mapping[str, int]) -> int:
        """The earliest start of a row that may still probe a window or a join state of these streams."""
        if self._counts_rows:
            return self._horizon
        # A row is needed while another stream may still bring a row that starts before its end.
        return min((start for alias, start in earliest.items() if alias not in streams), default=FOREVER)
