"""A planning problem: a query and a topology, turned into figures that planners compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError
from braid.model.advertisement import Advertisement
from braid.model.checks import check
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.bill import Bill, Charge
from braid.planning.cost.figures import Expected, Figures
from braid.planning.cost.limits import check_range
from braid.planning.cost.models import CostModel
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.order.subsets import members
from braid.planning.reuse.matching import Match, matches
from braid.planning.transport import Transport

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Offer:
    """A derived stream of another deployment that the query can use.

    `mask` has the streams it joins, `site` is the number of its site, and `charges` are the costs of using it.
    """

    mask: int
    site: int
    match: Match
    charges: tuple[Charge, ...] = ()

    @property
    def cost(self) -> float:
        return sum(charge.amount for charge in self.charges)

    @property
    def rank(self) -> tuple[float, int]:
        """The lower, the better: by cost, and for equal costs by the number of filters that must be weakened."""
        return self.cost, len(self.match.weakened)


@dataclass(frozen=True, eq=False)
class Problem:
    """The input of a planner. Streams and sites are numbers; sets of streams are bit masks.

    `origins` has the site where each stream starts. `sink` is the site where the result is wanted; None if it may stay
    at the site that makes it. Long computations check the `deadline` again and again.
    """

    query: Query
    topology: Topology
    figures: Figures
    model: CostModel
    origins: tuple[int, ...]
    sink: int | None = None
    offers: tuple[Offer, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    deadline: Deadline = NO_DEADLINE

    @classmethod
    def of(
        cls,
        query: Query,
        statistics: Statistics,
        topology: Topology,
        model: CostModel,
        sink: str | None = None,
        advertised: Iterable[Advertisement] = (),
        deadline: Deadline = NO_DEADLINE,
    ) -> Problem:
        figures = Expected.of(query, statistics)
        model.check(figures)
        problem = cls(
            query,
            topology,
            figures,
            model,
            origins=tuple(_origin(query, statistics, topology, alias) for alias in query.aliases),
            sink=None if sink is None else topology.position(sink),
            statistics=statistics,
            deadline=deadline,
        )
        problem = replace(problem, offers=tuple(problem._offers(advertised)))
        check_range(figures, model, problem.transport)
        return problem

    def _offers(self, advertised: Iterable[Advertisement]) -> Iterable[Offer]:
        """The best offer for each set of streams at each site."""
        joined_streams = {source.stream for source in self.query.sources}
        best: dict[tuple[int, int], Offer] = {}
        check(advertised, Iterable, "advertised", PlanningError)
        for advertisement in advertised:
            self.deadline.check()
            check(advertisement, Advertisement, "an item of advertised (see Deployment.advertised)", PlanningError)
            if all(source.stream in joined_streams for source in advertisement.query.sources):
                self._add_offers(advertisement, best)
        return best.values()

    def _add_offers(self, advertisement: Advertisement, best: dict[tuple[int, int], Offer]) -> None:
        """Add the offers of an advertisement that are better than those known for the same streams and site."""
        site = self.topology.position(advertisement.site)

        def cannot_improve(streams: frozenset[str]) -> bool:
            known = best.get((self.mask(streams), site))
            return known is not None and known.rank == (0, 0)

        for match in matches(self.query, advertisement, self.deadline, cannot_improve):
            offer = Offer(self.mask(match.streams), site, match, tuple(self._weakening(match)))
            known = best.get((offer.mask, site))
            if offer.mask.bit_count() > 1 and (known is None or offer.rank < known.rank):
                best[offer.mask, site] = offer

    def _weakening(self, match: Match) -> Iterable[Charge]:
        """The cost of the additional rows that are shipped once filters of a derived stream are weakened."""
        for flow in match.flows:
            if flow.streams & match.let_through:
                mask = self.mask(flow.streams)
                volume = self.volume(mask)
                source, target = self.topology.position(flow.source), self.topology.position(flow.target)
                amount = self.transport.cost(volume, source, target)
                yield Charge(
                    f"let more through: {self.label(mask)}", flow.streams, flow.source, flow.target, volume, amount
                )

    def bill(self, charges: Iterable[Charge]) -> Bill:
        return Bill(self.model.unit, tuple(charges), self.figures.sizes is not None)

    @property
    def streams(self) -> tuple[str, ...]:
        return self.figures.streams

    @property
    def everything(self) -> int:
        """The mask of all streams."""
        return (1 << len(self.streams)) - 1

    @cached_property
    def transport(self) -> Transport:
        return self.model.transport(self.topology, self.deadline)

    def mask(self, streams: Iterable[str]) -> int:
        return sum(1 << self.streams.index(stream) for stream in streams)

    def names(self, mask: int) -> frozenset[str]:
        return frozenset(self.streams[stream] for stream in members(mask))

    @cached_property
    def _ties(self) -> tuple[list[int], list[int]]:
        """The streams of each attribute class and band, and the streams of each residual."""
        graph = self.query.graph
        return (
            [self.mask(streams) for streams in graph.indexed],
            [self.mask(predicate.sources) for predicate in graph.residuals],
        )

    def tied(self, left: int, right: int) -> bool:
        """Whether a condition of the query is between two sets of streams, and on no other stream."""
        both = left | right
        return self.keyed(left, right) or any(
            streams & left and streams & right and not streams & ~both for streams in self._ties[1]
        )

    def keyed(self, left: int, right: int) -> bool:
        """Whether an equality or a band of the query is between two sets of streams, so that an index finds matches."""
        return any(streams & left and streams & right for streams in self._ties[0])

    def label(self, mask: int) -> str:
        return " ⋈ ".join(self.streams[stream] for stream in members(mask))

    def volume(self, mask: int) -> float:
        """The volume that is charged, per second, for shipping the join of these streams."""
        if "volumes" in self.__dict__:
            return float(self.volumes[mask])
        return self.model.volume(self.figures.rate(mask), self.figures.size(mask))

    @cached_property
    def volumes(self) -> Floats:
        """The volume of every set of streams, indexed by mask."""
        return self.model.volume(self.figures.table.rates, self.figures.table.sizes)

    def work(self, left: int, right: int) -> float:
        """The cost of joining two sets of streams at one site."""
        figures = self.figures
        return self.model.work(
            figures.rate(left), figures.population(left), figures.rate(right), figures.population(right)
        )

    def works(self, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> Floats:
        """The cost of joining each of many pairs of sets."""
        rates, populations, _ = self.figures.table
        return self.model.work(rates[lefts], populations[lefts], rates[rights], populations[rights])


def _origin(query: Query, statistics: Statistics, topology: Topology, alias: str) -> int:
    site = statistics.site(query.source(alias))
    if site is None:
        raise PlanningError(f"no site has stream '{alias}'; give Statistics(sites={{'{alias}': site}})")
    return topology.position(site)
