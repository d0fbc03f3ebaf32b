"""The inner joins of a program: rows enter windows, and probe the windows of the other streams.

In a step all new rows enter their windows first. Then each new row is the head of a probe sequence. By the delta rule a
head sees the new rows of streams before its own in the order of processing, but only the old rows of streams after it.
So every combination is found exactly once, by the last of its rows in this order (see `Track`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.engine.counts import JoinCounts, JoinStateCounts, TrialCounts
from braid.engine.input.inlet import Inlet
from braid.engine.join.lanes import Lanes, StateKey
from braid.engine.join.sampling import Sampler
from braid.engine.join.track import Track
from braid.engine.join.trial import Trial
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.segment import Segment
from braid.engine.transition import BuildTrack, strategy_named
from braid.engine.window.join_state import JoinState
from braid.errors import PlanError
from braid.model.program import SiteProgram
from braid.model.window import FOREVER


class InnerJoins:
    """Runs the joins of a site program; returns combinations as rows, with the columns that the program projects.

    `lifetime` names further columns for the lifetime of each combination (see `Emitter`). `strategy` names the
    transition strategy for plan changes. `hash_bits` shortens the hashes of keys, so that tests can make collisions
    common.
    """

    def __init__(
        self,
        program: SiteProgram,
        *,
        lifetime: Sequence[str] = (),
        strategy: str = "jisc",
        hash_bits: int = FULL_HASH,
    ) -> None:
        self._lifetime = tuple(lifetime)
        self._hash_bits = hash_bits
        self._transition = strategy_named(strategy).transition
        self._counts_rows = program.query.counts_rows
        self._released = -FOREVER
        """In queries that count rows: rows that start before this have entered their windows."""
        self._horizon = -FOREVER
        """In queries that count rows: the value of `_released` before the current step."""
        self.inlets: Mapping[str, Inlet] = {}
        self._against: SiteProgram | None = None
        self._tracks = self._transition([], self._builder(program))
        dataflow = self._lanes.rest
        self.inlets = dataflow.inlets
        self._sampler = Sampler(dataflow)
        self.schema: pa.Schema = dataflow.emitters[0].schema

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

        The strategy decides how the join states that only the new program has are filled. With `against`, the new
        program is on trial: in each step it takes new rows as long as that costs no more than `against` would, which
        takes the others. Programs with join states are never on trial: they take over at once.
        """
        if program.query != self.program.query or (against is not None and against.query != program.query):
            raise PlanError("a running engine can change its plan, not its query")
        self._against = against
        if program == self.program and self._lanes.join_states:
            return  # Nothing changes: there is no trial of join states to begin or to end.
        self._tracks = self._transition(self._tracks, self._builder(program))
        self._begin_trial()
        self._sampler = Sampler(self._lanes.rest)

    def _begin_trial(self) -> None:
        """Let the newest track try its program out, unless several tracks run or a program keeps join states."""
        track = self._tracks[-1]
        if self._against is None or len(self._tracks) > 1 or track.join_states:
            return
        old = Lanes(self._against, self._hash_bits, self._lifetime, self.inlets)
        if not old.join_states:
            track.trial = Trial(old, track.lanes)

    def _builder(self, program: SiteProgram) -> BuildTrack:
        def build(join_states: Mapping[StateKey, JoinState]) -> Track:
            track = Track(Lanes(program, self._hash_bits, self._lifetime, self.inlets, join_states))
            self._expire_combinations(track)
            return track

        return build

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """Take in segments; returns the combinations that are complete with them, as rows."""
        self._receive(segments)
        first_new = {alias: inlet.first_new for alias, inlet in self.inlets.items()}
        return [rows for track in self._tracks for rows in track.step(first_new)]

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take in segments whose combinations were returned before: they fill the windows, but probe nothing."""
        self._receive(segments)
        if self._lanes.join_states:
            # Combinations of these rows are missing from the join states, as after any plan change.
            self._tracks = self._transition([], self._builder(self.program))

    @property
    def horizon(self) -> int:
        """From now on, no combination that starts before this will come."""
        return self._needed_from(frozenset(), self._earliest())

    def needed_from(self, alias: str) -> int:
        """The earliest start of a row that may still probe the window of a stream."""
        return self._needed_from({alias}, self._earliest())

    @property
    def released(self) -> int | None:
        """If windows count rows, the time up to which rows have entered their windows; None if all rows have."""
        return self._released if self._counts_rows else None

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. If not (windows count rows, or two plans run), rebuild from segments."""
        return not self._counts_rows and len(self._tracks) == 1

    def state(self) -> State:
        """Everything that another instance with the same query and plan needs to continue from here (see `load`)."""
        join_states = {name: join_state.state() for name, join_state in self._join_states.items()}
        streams = {alias: inlet.state() for alias, inlet in self.inlets.items()}
        return {"streams": streams, "join_states": join_states}

    def load(self, state: State) -> None:
        """Continue from the state of another instance; its arrays are used as they are, not copied."""
        for alias, inlet in self.inlets.items():
            inlet.load(state["streams"][alias])
        for name, join_state in self._join_states.items():
            join_state.load(state["join_states"][name])

    @property
    def _join_states(self) -> Mapping[str, JoinState]:
        """The join states of the current plan."""
        return self._lanes.named_join_states

    def join_counts(self) -> tuple[JoinCounts, ...]:
        """What each join has counted; during a trial, those of the earlier plan too."""
        return tuple(counts for lanes in self._tracks[-1].all_lanes for counts in lanes.counts())

    @property
    def completion_work(self) -> int:
        """The part of the work of the joins that completed join states."""
        return self._lanes.completion_work

    def join_state_counts(self) -> dict[str, JoinStateCounts]:
        return {
            name: JoinStateCounts(len(join_state.window), not join_state.check_missing())
            for name, join_state in self._join_states.items()
        }

    def trial_counts(self) -> Mapping[str, TrialCounts]:
        trial = self._tracks[-1].trial
        return {} if trial is None else trial.counts()

    @property
    def waiting(self) -> int:
        """The number of rows that wait for a watermark before they enter their windows."""
        return sum(inlet.waiting for inlet in self.inlets.values())

    @property
    def sampler(self) -> Sampler:
        """Samples what other plans would do with the new rows."""
        return self._sampler

    def _receive(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            for inlet in self.inlets.values():
                if inlet.declaration.name == segment.stream:
                    inlet.receive(segment)
        self._enter()

    def _enter(self) -> None:
        """Expired rows leave the windows, then new rows enter them."""
        before = None
        if self._counts_rows:
            before = min(inlet.watermark for inlet in self.inlets.values())
            self._horizon = self._released
            self._released = before
        for track in self._tracks:
            self._expire_combinations(track)
        earliest = self._earliest()
        for alias, inlet in self.inlets.items():
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
        return {alias: inlet.earliest for alias, inlet in self.inlets.items()}

    def _needed_from(self, streams: Set[str], earliest: Mapping[str, int]) -> int:
        """The earliest start of a row that may still probe a window or a join state of these streams."""
        if self._counts_rows:
            return self._horizon
        # A row is needed while another stream may still bring a row that starts before its end.
        return min((start for alias, start in earliest.items() if alias not in streams), default=FOREVER)
