"""The plan changes of one query in a simulation: what its coordinator and its sites do when they learn something."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from braid.adapt.network.proposal import Proposal
from braid.errors import PlanError
from braid.hosts.simulated.change_messages import ChangeMessages
from braid.hosts.simulated.site import SimulatedSite
from braid.planning.deployment import Deployment
from braid.runtime.migration.change import ChangeState, Phase, Verdict
from braid.runtime.migration.succession import begin_change, divided, retired
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.offer import OfferedStream

MARGIN = 50_000
"""How much later than the newest result a site promises to give none, in microseconds of event time."""


class ChangingNetwork(Protocol):
    """What a plan change does to a simulation."""

    @property
    def now(self) -> float: ...
    def deployed(self, query: str) -> Deployed: ...
    def redeploy(self, query: str, deployed: Deployed) -> None: ...
    def watermarks(self, channels: Sequence[str]) -> list[int]: ...
    def site(self, query: str, generation: int, site: str) -> SimulatedSite | None: ...
    def wake(self, query: str, generation: int, site: str) -> None: ...
    def unable_until(self, site: str) -> float | None: ...
    def later(self, moment: float, happening: Callable[[], None]) -> None: ...
    def note(self, query: str, site: str, what: str) -> None: ...
    def chosen(self, query: str, plan: Deployment) -> None: ...
    def succeeded(self, query: str, site: str, plan: Deployment, generation: int) -> None: ...


@dataclass
class SimulatedChange:
    """A plan change of a simulation, with the seconds at which its phases began."""

    plan: Deployment
    asked: float
    phases: dict[Phase, float]
    moment: int | None = None
    reason: str = ""
    predicted: float | None = None
    """The share of the cost that the change was expected to save; None if a controller did not choose it."""
    taken_over: tuple[str, ...] = ()
    """The sites that do the same for both plans, and go on as they are."""
    offers: Sequence[OfferedStream] = ()
    """Joins of others that the plan may read."""
    passed: float | None = None
    """When event time had passed its moment where the streams enter the query."""

    @property
    def phase(self) -> Phase:
        return list(self.phases)[-1]


class Changes:
    """The plan changes of a query, one after the other.

    A change that is asked for while another one is under way takes its place, as long as that one has no go yet;
    otherwise it waits.
    """

    def __init__(self, query: str, network: ChangingNetwork, messages: ChangeMessages) -> None:
        self._query = query
        self._network = network
        self._messages = messages
        self._waiting: deque[SimulatedChange] = deque()
        self._running: str | None = None
        """The key of the change that is under way. It is in the log of the coordinator."""
        self._by_key: dict[str, SimulatedChange] = {}
        self.records: list[SimulatedChange] = []

    @property
    def is_under_way(self) -> bool:
        return self._running is not None or bool(self._waiting)

    # The coordinator

    def propose(self, proposal: Proposal) -> None:
        """Change to a plan that a controller has chosen, unless another change is under way or waits."""
        if self._running is None and not self._waiting:
            self._network.chosen(self._query, proposal.plan)
            self.ask(proposal.plan, proposal.reason, proposal.predicted)

    def ask(
        self,
        plan: Deployment,
        reason: str = "",
        predicted: float | None = None,
        offers: Sequence[OfferedStream] = (),
    ) -> None:
        """Change to another plan as soon as the coordinator is there and no other change is under way."""
        home = self._messages.home
        back = self._network.unable_until(home)
        if back is not None:
            self._network.later(back, lambda: self.ask(plan, reason, predicted, offers))
            return
        record = SimulatedChange(plan, self._network.now, {}, reason=reason, predicted=predicted, offers=offers)
        self._waiting.append(record)
        state = self._state(home)
        if state is not None and state.verdict is None:
            self._messages.say(home, state.change, Verdict(go=False, reason="another change takes its place"))
        self._begin_next()

    def _state(self, site: str) -> ChangeState | None:
        """What a site knows of the change that is under way."""
        return next((state for state in self._messages.states(site) if state.change.key == self._running), None)

    def _begin_next(self) -> None:
        while self._waiting and self._running is None:
            record = self._waiting.popleft()
            self.records.append(record)
            try:
                self._begin(record.plan, record)
            except PlanError as error:
                record.phases[Phase.ABORTED] = self._network.now
                record.reason = str(error)

    def _begin(self, plan: Deployment, record: SimulatedChange) -> None:
        deployed = self._network.deployed(self._query)
        change, prepared = begin_change(deployed, plan, self._network.watermarks, offers=record.offers)
        self._running = change.key
        self._by_key[change.key] = record
        new = prepared.generation(change.new)
        record.taken_over = tuple(site for site in new.sites if site not in new.started)
        self._network.redeploy(self._query, prepared)
        self._messages.begin(change)

    def _coordinate(self, state: ChangeState) -> None:
        """The coordinator has learned something."""
        change, record = state.change, self._by_key[state.change.key]
        if state.phase not in record.phases:
            record.phases[state.phase] = self._network.now
            self._network.note(self._query, self._messages.home, f"plan change to #{change.new} is {state.phase}")
        deployed = self._network.deployed(self._query)
        if change.key != self._running:
            return
        verdict = state.decides()
        if verdict is not None:
            self._messages.say(self._messages.home, change, verdict)
        elif state.phase is Phase.SWITCHING and record.moment is None:
            record.moment = state.moment
            self._network.redeploy(self._query, divided(deployed, state))
        elif state.phase.is_over:
            self._running = None
            if state.verdict is not None and state.verdict.reason:
                record.reason = state.verdict.reason
            record.moment = state.moment if state.phase is Phase.DONE else None
            self._network.redeploy(self._query, retired(deployed, state).without_generation(state.loser))
            self._begin_next()

    def waits(self, calm_since: float) -> tuple[str, Phase, float] | None:
        """The change that is under way, its phase, and for how long it has waited for nothing but its sites."""
        record = None if self._running is None else self._by_key[self._running]
        if self._running is None or record is None or not record.phases:
            return None
        began = record.phases[record.phase]
        if record.phase is Phase.SWITCHING:
            if record.passed is None and self._has_passed(record):
                record.passed = self._network.now
            if record.passed is None:
                return None
            began = max(began, record.passed)
        return self._running, record.phase, self._network.now - max(began, calm_since)

    def _has_passed(self, record: SimulatedChange) -> bool:
        """Whether event time has passed the moment of a change where the streams enter the query."""
        return record.moment is not None and self._arrived() >= record.moment

    def _arrived(self) -> int:
        """How far all streams have come where they enter the query."""
        intakes = self._network.deployed(self._query).intakes.values()
        return min(self._network.watermarks([outlet.channel for spec in intakes for outlet in spec.work.outlets]))

    # Everybody

    def learned(self, site: str, state: ChangeState) -> None:
        """A site has learned something of a change."""
        change = state.change
        old = self._network.site(self._query, change.old, site)
        if old is not None and site in change.answering:
            old.gate.learn(state, site)
            self._network.wake(self._query, change.old, site)
            self._answer(site, old, state)
        new = self._network.site(self._query, change.new, site)
        if new is not None:
            self._prepare(site, new, state)
        if state.phase is Phase.DONE:
            self._network.succeeded(self._query, site, self._by_key[change.key].plan, change.new)
        if site == self._messages.home:
            self._coordinate(state)

    def stepped(self, generation: int, site: str) -> None:
        """A site has done a step for a generation."""
        state = self._state(site)
        simulated = self._network.site(self._query, generation, site)
        if state is None or simulated is None:
            return
        if generation == state.change.old and site in state.change.answering:
            self._answer(site, simulated, state)
        if generation == state.change.new:
            self._prepare(site, simulated, state)

    def _prepare(self, site: str, simulated: SimulatedSite, state: ChangeState) -> None:
        reached = simulated.readiness.reached(simulated.reached, state.change.level, self._arrived)
        ready = state.ready(site, reached)
        if ready is not None:
            self._messages.say(site, state.change, ready)

    def _answer(self, site: str, simulated: SimulatedSite, state: ChangeState) -> None:
        if state.must_promise(site):
            promise = simulated.gate.promise(state, site, simulated.newest_result, MARGIN)
            self._messages.say(site, state.change, promise)
            return
        answered = state.answered(site, simulated.answered)
        if answered is not None:
            self._messages.say(site, state.change, answered)
