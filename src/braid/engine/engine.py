"""The engine: runs the program of one site on segments.

It does no I/O, reads no clock and starts no thread. Segments go in, result rows come out; in between it holds the
windows of its streams. First come the inner joins, by the plan (`InnerJoins`); then what no plan changes: outer, semi
and anti joins, and existence tests (`Conclusion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Words
from braid.engine.counts import Counts, StreamCounts
from braid.engine.input.inlet import Inlet
from braid.engine.join.inner_joins import InnerJoins
from braid.engine.join.sampling import MOST_SAMPLED, Fanout
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.output.conclusion import Conclusion
from braid.engine.output.fixed_join_stage import FixedJoinStage
from braid.engine.output.waiting import WaitingRows
from braid.engine.segment import Segment, no_rows
from braid.model.program import SiteProgram
from braid.model.window import FOREVER


class Engine:
    """Runs a site program.

    `event_time` names a column to add to the results: the time at which a result is certain. For a combination that is
    the time from which all its rows are alive. `strategy` names the transition strategy for plan changes. `hash_bits`
    cuts the hashes of keys, so that tests can make collisions common.
    """

    def __init__(
        self,
        program: SiteProgram,
        *,
        event_time: str | None = None,
        strategy: str = "jisc",
        hash_bits: int = FULL_HASH,
    ) -> None:
        query = program.query
        lifetime = [] if event_time is None else [event_time]
        if not query.ends_at_joins:
            lifetime = list(Conclusion.lifetime)
        self._joins = InnerJoins(program, lifetime=lifetime, strategy=strategy, hash_bits=hash_bits)
        self._conclusion = None
        if not query.ends_at_joins:
            self._conclusion = Conclusion(query, self._joins.schema, event_time, hash_bits)
        self._emitted = 0
        self.schema: pa.Schema = self._joins.schema if self._conclusion is None else self._conclusion.schema

    @property
    def program(self) -> SiteProgram:
        """The program in use; during a transition, the new one."""
        return self._joins.program

    def change(self, program: SiteProgram, against: SiteProgram | None = None) -> None:
        """Continue with another program for the same query; the windows stay as they are.

        The strategy decides how the join states that only the new program has are filled. If `against` is given, the
        new program is on trial: in each step it takes the new rows only as long as that does not cost more than
        `against`, which takes the others. Programs with join states are not tried out: they simply take over.
        """
        self._joins.change(program, against)

    def step(self, segments: Iterable[Segment]) -> list[pa.RecordBatch]:
        """Take segments in; returns the results that are complete with them."""
        segments = list(segments)
        results = self._joins.step(segments)
        if self._conclusion is not None:
            results = self._conclusion.step(segments, results, self._joins.horizon)
        self._emitted += sum(rows.num_rows for rows in results)
        return results

    def restore(self, segments: Iterable[Segment]) -> None:
        """Take segments in whose results were emitted earlier: they fill the windows, but probe nothing.

        If the query has more than inner joins, `wait` must follow when everything is restored.
        """
        segments = list(segments)
        self._joins.restore(segments)
        if self._conclusion is not None:
            self._conclusion.restore(segments)

    def finish(self) -> list[pa.RecordBatch]:
        """No more rows will come: returns the results that were still waiting for a watermark."""
        declared = {source.declared.name: source.declared for source in self.program.query.inputs}
        return self.step(Segment(name, no_rows(stream.schema), FOREVER) for name, stream in declared.items())

    def newly_waiting(self) -> tuple[WaitingRows, ...]:
        """Rows that began to wait for a watermark since the last call; none if the query has only inner joins.

        A caller that stores segments for `restore` stores these for `wait`.
        """
        return () if self._conclusion is None else self._conclusion.newly_waiting()

    def wait(self, logs: Mapping[str, Iterable[pa.RecordBatch]]) -> None:
        """Take back the rows of `newly_waiting`, by the names of their logs, after everything is restored.

        Rows that have been decided since are dropped.
        """
        if self._conclusion is not None:
            self._conclusion.wait(logs, self._joins.horizon)

    @property
    def logs(self) -> Mapping[str, str]:
        """The logs of `newly_waiting` and their columns `until`; none of them has the name of a stream."""
        return {} if self._conclusion is None else self._conclusion.logs

    @property
    def stages(self) -> Sequence[FixedJoinStage]:
        """The fixed joins, in their order, for those who divide their waiting rows anew."""
        return () if self._conclusion is None else self._conclusion.stages

    @property
    def _inlets(self) -> Mapping[str, Inlet]:
        """The inlets of all streams that the query reads."""
        return self._joins.inlets if self._conclusion is None else {**self._joins.inlets, **self._conclusion.inlets}

    def inlet(self, alias: str) -> Inlet:
        """The inlet of a stream, with its window."""
        return self._inlets[alias]

    @property
    def movable(self) -> bool:
        """Whether `state` is complete. If windows count rows, or two plans run, rebuild the engine from segments."""
        return self._joins.movable and (self._conclusion is None or self._conclusion.movable)

    def state(self) -> State:
        """Everything that another engine with the same query and plan needs to continue from here (see `load`)."""
        conclusion = None if self._conclusion is None else self._conclusion.state()
        return {"joins": self._joins.state(), "conclusion": conclusion}

    def load(self, state: State) -> None:
        """Continue from the state of another engine; its arrays are used as they are, not copied."""
        self._joins.load(state["joins"])
        if self._conclusion is not None:
            self._conclusion.load(state["conclusion"])

    def oldest_needed(self, alias: str) -> int:
        """The event time before which no row of a source is needed any more, as far as is known."""
        return self._inlets[alias].oldest_needed()

    def needed_from(self, alias: str) -> int:
        """The earliest start of anything that may still probe the window of a source."""
        if alias in self._joins.inlets:
            return self._joins.needed_from(alias)
        assert self._conclusion is not None
        return self._conclusion.needed_from(alias)

    def counts(self) -> Counts:
        streams = {
            alias: StreamCounts(inlet.received, inlet.late, inlet.untimed, inlet.entered, len(inlet.window))
            for alias, inlet in self._inlets.items()
        }
        waiting = self._joins.waiting + (0 if self._conclusion is None else self._conclusion.waiting)
        joins, join_states = self._joins.join_counts(), self._joins.join_state_counts()
        trials, completion = self._joins.trial_counts(), self._joins.completion_work
        return Counts(streams, joins, self._emitted, join_states, waiting, trials, completion)

    def sample(self, new: Mapping[str, int], most: int = MOST_SAMPLED) -> tuple[Fanout, ...]:
        """How many combinations new rows make with each set of other streams, whatever the plan.

        `new` is the number of new rows of each stream; at most `most` rows of each are sampled.
        """
        return self._joins.sampler.sample(new, most)

    @property
    def sample_cost(self) -> int:
        """About the work of `sample`, in probes and candidates."""
        return self._joins.sampler.cost

    def key_words(self, new: Mapping[str, int]) -> Iterator[tuple[str, int, Words]]:
        """The key words of the new rows (`new` of each stream), by source and attribute class.

        Words of one class may come in two arrays. The arrays are valid until the next step.
        """
        return self._joins.sampler.key_words(new)
