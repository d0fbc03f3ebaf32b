"""What must hold after every step of a simulation, whatever goes wrong in it.

1. **One reign.** Each moment of event time has exactly one plan that answers for it, and everybody who knows a fact of
   a plan change knows the same one. No plan gives a result outside its reign.
2. **No batch skipped.** A site takes the batches of a channel one after the other, each once, from where it began to
   read.
3. **Whole windows.** A site of a new plan that has said that it is ready has all rows in its windows that may still be
   in a result.
4. **Nothing hangs.** Once nothing goes wrong any more, a plan change is done or undone within bounded time.

This class sees everything at once, which no site does: what it finds is not known to any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from braid.channels.batch import NONE, Batch
from braid.engine.input.lifetime import event_times
from braid.errors import InvariantError
from braid.hosts.simulated.place import Place
from braid.hosts.simulated.whole_windows import missing_rows
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window import FOREVER
from braid.runtime.migration.change import ChangeState, Fact, Phase, Promise, Ready, fact_key
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.generation import Generation, Reign
from braid.runtime.sites.site import SiteRuntime
from braid.runtime.sites.work import Outlet, SiteWork


@dataclass
class Ledger:
    """Everything that was ever published on a channel."""

    numbers: list[int] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)
    """Where each number is among the numbers."""
    made: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The rows of each batch, and the newest of their starts."""
    batches: list[tuple[int, Batch]] = field(default_factory=list)
    """The batches of a stream with rows that may still be needed, each with the moment at which the last one ends."""
    newest: int = -FOREVER
    """The last event time of its results."""


class Invariants:
    """Told of everything that happens; raises `InvariantError` as soon as something is wrong.

    `runtime` gives what runs at a place, if anything does. `answered` gives how far all results of a generation have
    come, and whether all of them were read. If plans may change, it `keeps_rows` to compare windows with. A change must
    not take more than `bound` seconds from one phase to the next while nothing goes wrong.
    """

    def __init__(
        self,
        runtime: Callable[[Place], SiteRuntime | None],
        answered: Callable[[str, Generation], tuple[int, bool]],
        *,
        keeps_rows: bool,
        bound: float | None,
    ) -> None:
        self._runtime = runtime
        self._answered = answered
        self._keeps_rows = keeps_rows
        self.bound = bound
        self._deployed: dict[str, Deployed] = {}
        self._begins: dict[str, int] = {}
        """From which event time on the generations of a query that are left have to answer."""
        self._facts: dict[str, ChangeState] = {}
        """What anybody has said of each change."""
        self._ledgers: dict[str, Ledger] = defaultdict(Ledger)
        self._taken: dict[tuple[Place, str], int] = {}

    # One reign

    def redeployed(self, query: str, deployed: Deployed) -> None:
        """A query goes on with other generations, or other reigns."""
        before = self._deployed.get(query)
        going_on = {generation.number: generation for generation in deployed.generations}
        for generation in before.generations if before is not None else ():
            reign = generation.reign
            if generation.number not in going_on and reign is not None:
                until = next(after.reign.since for after in deployed.generations if after.reign is not None)
                self._check_ended(query, generation, until)
                self._begins[query] = until
            elif reign is not None:
                self._check_stays(query, reign, going_on[generation.number].reign)
        self._check_division(query, deployed)
        self._deployed[query] = deployed

    def _check_ended(self, query: str, generation: Generation, until: int) -> None:
        reached, is_read = self._answered(query, generation)
        if reached < until or not is_read:
            raise InvariantError(
                f"plan #{generation.number} of {query} answers before {until}, and ended when it had come to "
                f"{reached}{'' if is_read else ' and its results were not read'}"
            )

    def _check_stays(self, query: str, before: Reign, after: Reign | None) -> None:
        is_same = after is not None and after.since == before.since and before.until in (after.until, FOREVER)
        if not is_same:
            raise InvariantError(f"a reign of {query} was {before}, and is {after} now")

    def _check_division(self, query: str, deployed: Deployed) -> None:
        reigns = [generation.reign for generation in deployed.generations if generation.reign is not None]
        bounds = [self._begins.get(query, -FOREVER), *(reign.until for reign in reigns)]
        if [reign.since for reign in reigns] != bounds[:-1] or bounds[-1] != FOREVER:
            raise InvariantError(
                f"not every event time has one plan of {query} that answers: {reigns} from {bounds[0]}"
            )
        if len(deployed.generations) > 2:
            raise InvariantError(f"{query} has {len(deployed.generations)} plans at once")
        for generation in deployed.generations:
            state = self._facts.get(f"{query} #{generation.number}")
            if state is not None and generation.reign is not None and generation.reign.since != state.moment:
                raise InvariantError(
                    f"plan #{generation.number} of {query} answers from {generation.reign.since} on, but its sites "
                    f"have agreed on {state.moment}"
                )

    def said(self, state: ChangeState) -> None:
        """Somebody knows some facts of a change."""
        change = state.change
        known = self._facts.get(change.key, ChangeState(change))
        for fact in state.facts.values():
            self._check_fact(known, fact)
            known = known.told(fact)
        if known.phase is Phase.ABORTED and known.promises:
            raise InvariantError(
                f"the change to {change.key} was aborted, and {', '.join(known.promises)} had promised"
            )
        self._facts[change.key] = known

    def _check_fact(self, known: ChangeState, fact: Fact) -> None:
        change, said = known.change, known.facts.get(fact_key(fact))
        if said is not None:
            if said != fact:
                raise InvariantError(f"of the change to {change.key}, some know {said}, others {fact}")
            return
        if isinstance(fact, Promise):
            for channel in self._results(change.query, change.old, fact.site):
                if self._ledgers[channel].newest >= fact.until:
                    raise InvariantError(
                        f"{fact.site} promises no result of {change.query} #{change.old} from {fact.until} on, and has "
                        f"given one at {self._ledgers[channel].newest}"
                    )
        if isinstance(fact, Ready):
            self._check_windows(Place(change.query, change.new, fact.site), change.since, change.level)

    def _results(self, query: str, number: int, site: str) -> Sequence[str]:
        generations = self._deployed[query].generations
        return [
            channel
            for generation in generations
            if generation.number == number
            for channel in generation.results.get(site, ())
        ]

    def _check_answer(self, place: Place, newest: int) -> None:
        """A place has published a result."""
        for state in self._facts.values():
            change = state.change
            if (change.query, change.old) != (place.query, place.generation) or place.site not in state.promises:
                continue
            until = state.promises[place.site] if state.moment is None else state.moment
            if newest >= until:
                raise InvariantError(
                    f"{place} gives a result at {newest}, and has no right to from {until} on, because of {change.key}"
                )

    # No batch skipped

    def published(self, place: Place, work: SiteWork, outlet: Outlet, batch: Batch) -> None:
        """A place has published a batch."""
        ledger = self._ledgers[batch.channel]
        ledger.positions[batch.number] = len(ledger.numbers)
        ledger.numbers.append(batch.number)
        ledger.made[batch.number] = batch.rows, batch.newest
        if outlet.fragment in work.finals:
            newest = _newest(batch)
            ledger.newest = max(ledger.newest, newest)
            self._check_answer(place, newest)
        elif self._keeps_rows:
            # What has ended at the watermark is in no result of a plan that is asked for later.
            changing = [state.change for state in self._facts.values() if not state.phase.is_over]
            needed = min([batch.watermark, *(change.since for change in changing if change.query == place.query)])
            ends = _last_end(work, outlet, batch)
            ledger.batches = [entry for entry in (*ledger.batches, (ends, batch)) if entry[0] > needed]

    def repeated(self, batch: Batch) -> None:
        """A place that has died, or could not reach its channels, makes a batch once more."""
        made = self._ledgers[batch.channel].made.get(batch.number)
        if made is not None and made != (batch.rows, batch.newest):
            raise InvariantError(
                f"batch {batch.number} of {batch.channel} has {made[0]} rows up to {made[1]}; made once more from the "
                f"same inputs it has {batch.rows} up to {batch.newest}"
            )

    def took(self, place: Place, taken: Mapping[str, Sequence[int]]) -> None:
        """A place has committed a step that took these batches of channels."""
        for channel, numbers in taken.items():
            before = self._taken.get((place, channel), NONE)
            ledger = self._ledgers[channel]
            first = ledger.positions[numbers[0]] if before == NONE else ledger.positions[before] + 1
            should = ledger.numbers[first : first + len(numbers)]
            if list(numbers) != should:
                raise InvariantError(
                    f"{place} takes the batches {', '.join(map(str, numbers))} of {channel} after batch {before}; "
                    f"published were {', '.join(map(str, should))}"
                )
            self._taken[place, channel] = numbers[-1]

    # Whole windows

    def _check_windows(self, place: Place, since: int, level: int) -> None:
        runtime = self._runtime(place)
        if runtime is None:
            raise InvariantError(f"{place} is ready, and nothing runs there")
        batches = {channel: [batch for _, batch in self._ledgers[channel].batches] for channel in runtime.work.arriving}
        for stream, live, held in missing_rows(runtime, batches, since, level):
            raise InvariantError(
                f"{place} is ready, and its window of {stream} has {held} of {live} rows that are alive at {since}"
            )

    # Nothing hangs

    def waits(self, key: str, phase: Phase, seconds: float) -> None:
        """A change has been in a phase for so long in which nothing went wrong, and nothing had to be waited for."""
        if self.bound is not None and seconds > self.bound:
            raise InvariantError(
                f"the change to {key} has been {phase} for {seconds:.1f} seconds in which nothing went wrong; "
                f"{self.bound:.1f} are enough"
            )


def _last_end(work: SiteWork, outlet: Outlet, batch: Batch) -> int:
    """When the last of the rows of a stream that were published in a batch ends."""
    stream = work.fragments[outlet.fragment].output
    assert stream is not None
    ends = [int(stream.lifetimes(segment.rows)[1].max()) for segment in batch.segments if segment.rows.num_rows]
    return max(ends, default=-FOREVER)


def _newest(batch: Batch) -> int:
    """The last event time of results."""
    times = [event_times(segment.rows.column(EVENT_TIME_COLUMN)) for segment in batch.segments]
    return max((int(moments.max()) for moments in times if len(moments)), default=-FOREVER)
