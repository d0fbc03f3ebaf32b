"""A query that runs over a network, as it is announced to sites and programs: its intakes and generations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from braid.errors import PlanError
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import FOREVER
from braid.planning.cost.bill import Bill
from braid.planning.deployment import Deployment
from braid.planning.solution.written import written_of
from braid.runtime.sites.common_parts import take_over
from braid.runtime.sites.compiling import compile_deployment
from braid.runtime.sites.earlier_formats import FORMAT, in_present_format
from braid.runtime.sites.generation import Generation
from braid.runtime.sites.intake import compile_intakes
from braid.runtime.sites.offer import OfferedStream, offered_streams
from braid.runtime.sites.site_spec import SiteSpec
from braid.runtime.sites.work import SiteWork

Shipped = Mapping[tuple[str, str], tuple[int, int, int]]
"""The batches, rows and bytes that were shipped from one site to another."""

KIND = "deployment"
"""The kind of document that announces a deployment."""


@dataclass(frozen=True)
class Deployed:
    """A query that runs. `intakes` are the sites where its streams enter it, `generations` its plans, oldest first.

    The `identity` tells this deployment from others under the same name, before it and after it; "" if an earlier
    release has deployed it. `newest` is the highest number that a generation has had; no number is used twice.
    `planner` and `cost` name the planner and the cost model that plan it anew. `sink` is the site where results are
    wanted, `past` what was shipped between sites for generations that have retired. A query that `is_dropped` gives no
    results any more: its remaining joins run for other deployments.
    """

    name: str
    text: str
    intakes: Mapping[str, SiteSpec]
    generations: tuple[Generation, ...] = ()
    is_dropped: bool = False
    newest: int = 0
    sink: str | None = None
    past: Shipped = field(default_factory=dict)
    planner: str = "exact"
    cost: str = "network_usage"
    identity: str = ""

    def __post_init__(self) -> None:
        reigns = [generation.reign for generation in self.generations if generation.reign is not None]
        for earlier, later in pairwise(reigns):
            if earlier.until != later.since:
                raise PlanError(
                    f"two plans of query '{self.name}' answer for event times before {earlier.until} and from "
                    f"{later.since} on: each event time needs one"
                )

    @classmethod
    def of(
        cls,
        name: str,
        text: str,
        streams: Iterable[Stream],
        query: Query,
        origins: Mapping[str, str],
        *,
        event_time: str,
        shards: int,
        since: int = -FOREVER,
        shared: bool = False,
        sink: str | None = None,
        planner: str = "exact",
        cost: str = "network_usage",
        identity: str = "",
    ) -> Deployed:
        """A query without a plan yet; `origins` tells at which site each of its streams starts, by alias.

        If it is `shared`, a later query may have its filters weakened.
        """
        declared, own_name = tuple(streams), unique_name(name, identity)

        def spec(site: str, work: SiteWork) -> SiteSpec:
            return SiteSpec(own_name, site, text, declared, work, event_time, shards)

        work = compile_intakes(own_name, query, origins, since, shared=shared)
        intakes = {site: spec(site, part) for site, part in work.items()}
        return cls(name, text, intakes, sink=sink, planner=planner, cost=cost, identity=identity)

    @property
    def unique_name(self) -> str:
        """What no other deployment is called. All that is stored of this one has it: checkpoints, channels, readers."""
        return unique_name(self.name, self.identity)

    def planned(
        self,
        plan: Deployment,
        *,
        offers: Sequence[OfferedStream] = (),
        shared: bool = False,
        first: int = -FOREVER,
    ) -> Generation:
        """The generation that comes next, with this plan. See `compile_deployment` for the rest.

        It takes over the sites of the current generation that do the same for both plans.
        """
        number = self.newest + 1
        name = f"{self.unique_name} #{number}"
        template = self.some_spec
        since = template.work.since
        work = compile_deployment(
            name, plan, self.intake_channels, since=since, offers=offers, shared=shared, first=first
        )
        current = self.current if self.generations else None
        taken_over, others = take_over(work, {} if current is None else current.sites)
        started = {
            site: replace(template, deployment=name, site=site, work=part, labels=(), generation=number)
            for site, part in others.items()
        }
        return Generation(
            number,
            {site: taken_over.get(site) or started[site] for site in work},
            plan.explain(),
            plan.bill,
            plan.paths,
            began={} if current is None else {site: current.began.get(site, {}) for site in taken_over},
            planner=plan.planner,
            written=written_of(plan.solution),
        )

    def with_generation(self, *changed: Generation) -> Deployed:
        """The same query with more generations, or other versions of those that it has."""
        generations = {generation.number: generation for generation in (*self.generations, *changed)}
        ordered = tuple(generations[number] for number in sorted(generations))
        return replace(self, generations=ordered, newest=max(self.newest, *generations))

    def without_generation(self, number: int) -> Deployed:
        remaining = tuple(generation for generation in self.generations if generation.number != number)
        return replace(self, generations=remaining)

    @property
    def unfiltered_channels(self) -> dict[str, str]:
        """The channels with all rows of a stream in time, before the conditions on it alone are checked, by alias."""
        return {alias: channel for alias, channel, is_filtered in self._intake_outlets if not is_filtered}

    @property
    def some_spec(self) -> SiteSpec:
        """Any of its sites: what they run differs, and everything else is the same."""
        return next(self.specs)

    @property
    def intake_channels(self) -> dict[str, str]:
        """The channel by which each stream comes, by alias."""
        return {alias: channel for alias, channel, is_filtered in self._intake_outlets if is_filtered}

    @property
    def _intake_outlets(self) -> Iterator[tuple[str, str, bool]]:
        """The channels of intakes: which stream they have, and whether only rows that meet the conditions on it."""
        for spec in self.intakes.values():
            for outlet in spec.work.outlets:
                fragment = spec.work.fragments[outlet.fragment]
                yield fragment.reads[0], outlet.channel, not fragment.is_unfiltered

    @property
    def query(self) -> Query:
        return self.some_spec.query

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.some_spec.streams

    @property
    def origins(self) -> dict[str, str]:
        """The site where each stream starts, by alias."""
        return {alias: site for site, spec in self.intakes.items() for alias in spec.work.own}

    @property
    def event_time(self) -> str:
        """The name of the event-time column in results."""
        return self.some_spec.event_time

    @property
    def current(self) -> Generation:
        """The newest generation that answers for some event time."""
        return next(one for one in reversed(self.generations) if one.reign is not None)

    @property
    def at_work(self) -> tuple[Generation, ...]:
        """The generations that sites work for."""
        return tuple(one for one in self.generations if not one.is_retired)

    def generation(self, number: int) -> Generation:
        return next(generation for generation in self.generations if generation.number == number)

    def ending(self, number: int) -> dict[str, SiteSpec]:
        """The sites that end with a generation: no other one that is at work has taken them over."""
        others = [one for one in self.at_work if one.number != number]
        going_on = {spec.subscriber for one in others for spec in one.sites.values()}
        sites = self.generation(number).sites
        return {site: spec for site, spec in sites.items() if spec.subscriber not in going_on}

    def served(self, started_for: int, site: str) -> int:
        """The generation that a site works for now: the current one, if that has taken over what was started there."""
        spec = self.current.sites.get(site)
        return self.current.number if spec is not None and spec.generation == started_for else started_for

    @property
    def sites(self) -> frozenset[str]:
        """Every site that runs something of it."""
        return frozenset(self.intakes).union(*(generation.sites for generation in self.generations))

    @property
    def specs(self) -> Iterator[SiteSpec]:
        """Everything that its sites run, each once."""
        yield from self.intakes.values()
        joins = (spec for generation in self.generations for spec in generation.sites.values())
        yield from {spec.subscriber: spec for spec in joins}.values()

    @property
    def paths(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The sites on the way between two sites."""
        return self.current.paths

    @property
    def bill(self) -> Bill:
        return self.current.bill

    @property
    def explanation(self) -> str:
        return self.current.explanation

    @property
    def results(self) -> list[str]:
        """The names of the channels that carry results."""
        by_site = (channels for generation in self.generations for channels in generation.results.values())
        return list(chain.from_iterable(by_site))

    @property
    def result_reigns(self) -> dict[str, tuple[int, int]]:
        """The channels that carry results of some reign, with its beginning and its end."""
        reigns = {}
        for generation in self.generations:
            if generation.reign is not None:
                for channel in (channel for channels in generation.results.values() for channel in channels):
                    reigns[channel] = (generation.reign.since, generation.reign.until)
        return reigns

    def subscriptions(self) -> Iterator[tuple[str, str]]:
        """Every channel that a site reads, and who reads it."""
        for spec in self.specs:
            for channel in spec.work.arriving:
                yield channel, spec.subscriber
            for outlet in spec.work.outlets:
                if outlet.keep:
                    # Without a reader, nobody else would release anything, and the channel would grow.
                    yield outlet.channel, spec.publisher
        for channel in self.results:
            yield channel, self.reader

    @property
    def published(self) -> frozenset[str]:
        """Every channel that a site publishes on."""
        return frozenset(outlet.channel for spec in self.specs for outlet in spec.work.outlets)

    @property
    def joined(self) -> frozenset[str]:
        """Every channel that a plan of it publishes on."""
        return frozenset().union(*(generation.published for generation in self.generations))

    def dropped(self, used: Collection[str]) -> Deployed | None:
        """What must go on if the query is dropped while others use some of its channels; None if nothing must."""
        needed = [generation.needed_for(used) for generation in self.generations]
        generations = tuple(generation for generation in needed if generation is not None)
        read = frozenset(used).union(*(generation.read for generation in generations))
        intakes = {site: spec for site, spec in self.intakes.items() if spec.publishes(read)}
        if not generations and not intakes:
            return None
        if not generations:
            generations = (replace(self.current, sites={}, began={}, written=None),)
        return replace(self, intakes=intakes, generations=generations, is_dropped=True)

    @property
    def offers(self) -> list[OfferedStream]:
        """The derived streams that later queries may use."""
        return list(offered_streams({site: spec.work for site, spec in self.current.sites.items()}))

    @property
    def reader(self) -> str:
        """The name under which results are read."""
        return f"results of {self.name}"

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "text": self.text,
            "intakes": {site: spec.to_json() for site, spec in self.intakes.items()},
            "generations": [generation.to_json() for generation in self.generations],
            "is_dropped": self.is_dropped,
            "newest": self.newest,
            "sink": self.sink,
            "past": [[source, target, *carried] for (source, target), carried in self.past.items()],
            "planner": self.planner,
            "cost": self.cost,
            "identity": self.identity,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Deployed:
        """The query that `to_json` wrote, now or in an earlier release; `BraidError` if its format cannot be read."""
        content = in_present_format(content)
        return cls(
            content["name"],
            content["text"],
            {site: SiteSpec.from_json(spec) for site, spec in content["intakes"].items()},
            tuple(Generation.from_json(generation) for generation in content["generations"]),
            content["is_dropped"],
            content["newest"],
            content["sink"],
            {(source, target): tuple(carried) for source, target, *carried in content["past"]},
            content["planner"],
            content["cost"],
            content["identity"],
        )


def unique_name(name: str, identity: str) -> str:
    """The `unique_name` of a deployment.

    >>> unique_name("gates", "1f0c8a2e")
    'gates 1f0c8a2e'
    """
    return f"{name} {identity}" if identity else name
