"""A planning problem: a query over a network, turned into figures."""

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
from braid.planning.cost.bill import Charge
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
    """A derived stream that is there already: which streams it joins, the number of its site, what its use costs."""

    mask: int
    site: int
    match: Match
    charges: tuple[Charge, ...] = ()

    @property
    def cost(self) -> float:
        return sum(charge.amount for charge in self.charges)

    @property
    def rank(self) -> tuple[float, int]:
        """Cheapest first; of equals, the one for which the fewest filters must let more through."""
        return self.cost, len(self.match.weakened)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a planner is given. Streams and sites are numbers; sets of streams are bit masks.

    `sink` is where the result is wanted; None if it may stay where it is made. Whoever works on the problem for longer
    than a moment looks at the `deadline` on the way.
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
            tuple(_origin(query, statistics, topology, alias) for alias in query.aliases),
            None if sink is None else topology.position(sink),
            statistics=statistics,
            deadline=deadline,
        )
        problem = replace(problem, offers=tuple(problem._offers(advertised)))
        check_range(figures, model, problem.network)
        return problem

    def _offers(self, advertised: Iterable[Advertisement]) -> Iterable[Offer]:
        present = {source.stream for source in self.query.sources}
        found: dict[tuple[int, int], Offer] = {}
        check(advertised, Iterable, "what is advertised", PlanningError)
        for advertisement in advertised:
            self.deadline.check()
            check(advertisement, Advertisement, "what is advertised (Deployment.advertised has it)", PlanningError)
            if all(source.stream in present for source in advertisement.query.sources):
                self._take_up(advertisement, found)
        return found.values()

    def _take_up(self, advertisement: Advertisement, found: dict[tuple[int, int], Offer]) -> None:
        """Add what an advertisement offers, where nothing is found yet that costs as little."""
        site = self.topology.position(advertisement.site)

        def free(streams: frozenset[str]) -> bool:
            known = found.get((self.mask(streams), site))
            return known is not None and known.rank == (0, 0)

        for match in matches(self.query, advertisement, self.deadline, free):
            offer = Offer(self.mask(match.streams), site, match, tuple(self._weakening(match)))
            known = found.get((offer.mask, site))
            if offer.mask.bit_count() > 1 and (known is None or offer.rank < known.rank):
                found[offer.mask, site] = offer

    def _weakening(self, match: Match) -> Iterable[Charge]:
        """What more will travel when filters of a derived stream also let through what this query needs."""
        for flow in match.flows:
            if flow.streams & match.let_through:
                mask = self.mask(flow.streams)
                volume = self.volume(mask)
                ends = self.topology.position(flow.source), self.topology.position(flow.target)
                amount = self.network.cost(volume, *ends)
                yield Charge(
                    f"let more through: {self.label(mask)}", flow.streams, flow.source, flow.target, volume, amount
                )

    @property
    def streams(self) -> tuple[str, ...]:
        return self.figures.streams

    @property
    def everything(self) -> int:
        """The set of all streams."""
        return (1 << len(self.streams)) - 1

    @cached_property
    def network(self) -> Transport:
        return self.model.network(self.topology, self.deadline)

    def mask(self, streams: Iterable[str]) -> int:
        return sum(1 << self.streams.index(stream) for stream in streams)

    def names(self, mask: int) -> frozenset[str]:
        return frozenset(self.streams[stream] for stream in members(mask))

    @cached_property
    def _ties(self) -> tuple[list[int], list[int]]:
        """The streams of each attribute class and band, and of each other condition."""
        graph = self.query.graph
        return (
            [self.mask(streams) for streams in graph.indexed],
            [self.mask(predicate.sources) for predicate in graph.residuals],
        )

    def tied(self, left: int, right: int) -> bool:
        """Whether a condition of the query ties two sets of streams."""
        return self.keyed(left, right) or any(
            found & left and found & right and not found & ~(left | right) for found in self._ties[1]
        )

    def keyed(self, left: int, right: int) -> bool:
        """Whether an equality or a band of the query ties two sets of streams, so that an index finds what matches."""
        return any(found & left and found & right for found in self._ties[0])

    def label(self, mask: int) -> str:
        return " ⋈ ".join(self.streams[stream] for stream in members(mask))

    def volume(self, mask: int) -> float:
        """What shipping the join of these streams is charged for."""
        if "volumes" in self.__dict__:
            return float(self.volumes[mask])
        return self.model.volume(self.figures.rate(mask), self.figures.size(mask))

    @cached_property
    def volumes(self) -> Floats:
        """The same of every set, by mask."""
        return self.model.volume(self.figures.table.rates, self.figures.table.sizes)

    def work(self, left: int, right: int) -> float:
        """What joining two sets at a site costs."""
        figures = self.figures
        return self.model.work(
            figures.rate(left), figures.population(left), figures.rate(right), figures.population(right)
        )

    def works(self, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> Floats:
        """The same of many pairs of sets."""
        rates, populations, _ = self.figures.table
        return self.model.work(rates[lefts], populations[lefts], rates[rights], populations[rights])


def _origin(query: Query, statistics: Statistics, topology: Topology, alias: str) -> int:
    site = statistics.site(query.source(alias))
    if site is None:
        raise PlanningError(f"no site has stream '{alias}'; give Statistics(sites={{'{alias}': site}})")
    return topology.position(site)
