"""The generations of a query through a plan change: one, then two that divide event time, then one again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from braid.errors import PlanError
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.runtime.migration.change import Change, ChangeState, Phase
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.generation import Reign
from braid.runtime.sites.offer import OfferedStream


def check_movable(query: Query) -> None:
    """Refuse to change the plan of a query if reading old batches of a channel cannot fill one of its windows."""
    for source in query.sources:
        if source.window.lifetime is None:
            raise PlanError(
                f"the window of '{source.alias}' does not end by time alone, so that no other site can fill it; "
                "the plan has to stay"
            )


def is_movable(query: Query) -> bool:
    """Whether the plan of a query can change while it runs."""
    return all(source.window.lifetime is not None for source in query.sources)


def begin_change(
    deployed: Deployed,
    plan: Deployment,
    watermarks: Callable[[Sequence[str]], list[int]],
    reason: str = "",
    asked: float = 0.0,
    offers: Sequence[OfferedStream] = (),
) -> tuple[Change, Deployed]:
    """A change to another plan, which may reuse some `offers`, and the query with its new generation.

    The new generation must have subscribed to its channels when `watermarks` tells how far they are: then it finds
    there all that it needs for results from the furthest of them on, and from when on what it reuses is complete.
    """
    draft = deployed.planned(plan, offers=offers)
    reached = watermarks(sorted(draft.outside))
    if max(reached) >= FOREVER:
        raise PlanError("a stream has ended, so that there is nothing left to plan for")
    since = max([*reached, *(offer.since for offer in offers)])
    prepared = replace(deployed.planned(plan, offers=offers, first=since), reign=None)
    old = deployed.current
    change = Change(
        query=deployed.name,
        old=old.number,
        new=prepared.number,
        preparing=tuple(prepared.started),
        answering=tuple(old.results),
        since=since,
        level=min(reached),
        reason=reason,
        asked=asked,
    )
    return change, deployed.with_generation(prepared)


def divided(deployed: Deployed, state: ChangeState) -> Deployed:
    """The query with the reigns of both generations, once the moment of the change is known."""
    change, moment = state.change, state.moment
    assert moment is not None
    old, new = deployed.generation(change.old), deployed.generation(change.new)
    since = Reign().since if old.reign is None else old.reign.since
    return deployed.with_generation(replace(old, reign=Reign(since, moment)), replace(new, reign=Reign(moment)))


def retired(deployed: Deployed, state: ChangeState) -> Deployed:
    """The query after a change is over. Its sites stop the generation that it has ended."""
    if state.phase is Phase.DONE:
        deployed = divided(deployed, state)
    loser = deployed.generation(state.loser)
    return deployed.with_generation(replace(loser, is_retired=True))
