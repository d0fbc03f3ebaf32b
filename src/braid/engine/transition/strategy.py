"""What every strategy for changing a plan looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from braid.engine.join.track import Track
from braid.engine.window.join_state import JoinState
from braid.model.plan import Plan

BuildTrack = Callable[[Mapping[frozenset[str], JoinState]], Track]
"""Builds the new plan. Of the join states it is given it takes over those that the new plan keeps as well."""

Transition = Callable[[list[Track], BuildTrack], list[Track]]
"""From the tracks that run, the newest last (none at the start), to those that run from now on."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way from one plan to another while rows keep coming."""

    name: str
    transition: Transition
    keeps_join_states: bool = True

    def plan(self, plan: Plan) -> Plan:
        """A plan as this strategy runs it: without its join states, if the strategy keeps none."""
        return plan if self.keeps_join_states else plan.without_kept()


def reusable(running: list[Track]) -> Mapping[frozenset[str], JoinState]:
    """The join states of the plan in use; none if there is no plan, or it has not yet taken over all the work."""
    return running[-1].kept if len(running) == 1 else {}
