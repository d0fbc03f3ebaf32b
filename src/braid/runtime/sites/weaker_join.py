"""Joins that a running query and a later one share, although the running one filters more.

Such a join runs for other queries from the beginning, like the joins that are left of a query which was dropped. It has
no intakes: it reads those of the running query, where its streams come without a filter, so that both agree on which
rows are late. The later query subscribes to it. The running query changes to a plan that does so, too, and checks its
own filters behind the join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from braid.model.advertisement import Advertisement
from braid.model.window import FOREVER
from braid.planning.deployment import Deployment
from braid.planning.reuse.weakening import WeakerJoin, reading, weakenable, weaker_join, with_offers
from braid.planning.solution.tree import TreeSolution
from braid.runtime.sites.compiling import compile_deployment
from braid.runtime.sites.deployed import Deployed, unique_name
from braid.runtime.sites.generation import Generation
from braid.runtime.sites.offer import OfferedStream, channel_of
from braid.runtime.sites.work import SiteWork


@dataclass(frozen=True)
class RunningPlan:
    """A query that runs, and its plan."""

    deployed: Deployed
    plan: Deployment

    @property
    def intakes(self) -> frozenset[str]:
        """The channels by which its streams come, filtered or not."""
        return frozenset({*self.deployed.intake_channels.values(), *self.deployed.unfiltered_channels.values()})

    def weakenable(self) -> Iterator[tuple[OfferedStream, Advertisement]]:
        """The joins that it offers, each with what it would be without the filters."""
        if self.deployed.unfiltered_channels:
            for offer in self.deployed.offers:
                weaker = weakenable(self.plan, offer.advertisement)
                if weaker is not None:
                    yield offer, weaker

    def reading(self, offers: Iterable[OfferedStream]) -> Deployment | None:
        """The same plan, with a join read from the first of some offers that has all it needs; None if none has."""
        plans = (reading(self.plan, offer.advertisement) for offer in offers)
        return next((plan for plan in plans if plan is not None), None)


@dataclass(frozen=True)
class SharedJoin:
    """A join with weaker filters for a running query and a later one, which is not deployed yet.

    The `identity` is that of the later one: two programs that deploy the same join have not deployed one thing.
    """

    running: RunningPlan
    join: WeakerJoin
    identity: str = ""

    @property
    def name(self) -> str:
        return f"{self.running.deployed.name} weaker {sha256(self.join.text.encode()).hexdigest()[:8]}"

    @property
    def reads(self) -> dict[str, str]:
        """The channels that it reads, by alias."""
        owner = self.running.deployed
        channels = {**owner.intake_channels, **owner.unfiltered_channels}
        return {alias: channels[theirs] for alias, theirs in self.join.names.items()}

    def deployed(self, first: int = -FOREVER) -> Deployed:
        """The join as it runs for others. What had ended at `first` is left out."""
        owner, join = self.running.deployed, self.join
        template = owner.some_spec
        name = f"{unique_name(self.name, self.identity)} #1"
        unfiltered = {alias: theirs for alias, theirs in join.names.items() if theirs in owner.unfiltered_channels}
        compiled = compile_deployment(
            name,
            join.plan,
            self.reads,
            since=template.work.since,
            shared=True,
            first=first,
            unfiltered={alias: owner.origins[theirs] for alias, theirs in unfiltered.items()},
        )
        streams = dict.fromkeys(source.declared for source in join.plan.query.sources)
        specs = {
            site: replace(
                template,
                deployment=name,
                site=site,
                text=join.text,
                streams=tuple(streams),
                work=_without_results(site, work),
                labels=(),
                generation=1,
            )
            for site, work in compiled.items()
        }
        plan = join.plan
        generation = Generation(1, specs, plan.explain(), plan.bill, plan.paths, planner=plan.planner)
        return Deployed(self.name, join.text, {}, (generation,), is_dropped=True, newest=1, identity=self.identity)


def _without_results(site: str, work: SiteWork) -> SiteWork:
    """The work of a site, except for the results of the query."""
    fragments = {name: fragment for name, fragment in work.fragments.items() if fragment.output is not None}
    read = {name for fragment in fragments.values() for name in fragment.reads}
    arriving = {
        channel: tuple(stream for stream in streams if stream in read)
        for channel, streams in work.arriving.items()
        if not read.isdisjoint(streams)
    }
    outlets = tuple(
        outlet
        for outlet in work.outlets
        if outlet.is_offered or outlet.channel in arriving or not {site}.issuperset(outlet.readers)
    )
    return replace(work, fragments=fragments, arriving=arriving, outlets=outlets)


def shared_joins(
    plan: Deployment, running: Iterable[RunningPlan], offers: Iterable[OfferedStream], identity: str = ""
) -> list[SharedJoin] | None:
    """The joins that a plan needs with weaker filters than the running queries have; None if one cannot be made.

    The `identity` is that of the deployment of the plan.
    """
    running, offers = list(running), list(offers)
    joins: list[SharedJoin] = []
    solution = plan.solution
    if not isinstance(solution, TreeSolution):
        return []
    for match in solution.reused(solution.tree):
        wanted = match.advertisement
        if channel_of(wanted, offers) is not None:
            continue
        found = (
            SharedJoin(one, weaker, identity)
            for one in running
            for offer, possible in one.weakenable()
            if (offer.advertisement.query, offer.advertisement.site) == (wanted.query, wanted.site)
            and (weaker := weaker_join(one.plan, match, solution.problem, possible.columns or ())) is not None
        )
        join = next(found, None)
        if join is None:
            return None
        joins.append(join)
    return joins


def reading_offers(plan: Deployment, offers: Iterable[OfferedStream]) -> Deployment:
    """A plan whose reused joins are those that are offered."""
    return with_offers(plan, [offer.advertisement for offer in offers])
