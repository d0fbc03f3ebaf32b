"""The statistics of a query over a network, from the figures of its sites.

Every stream that enters the query or leaves a site is on a channel, which counts its rows and bytes. So the rate of
each join that the running plan ships is measured. Its selectivity is that rate, divided by the rate that the join would
have if all conditions always held. Other joins are estimated: from samples, if one site has all their streams, or else
from the sketches of their keys.

If each part of the keys has a tree of its own, the joins within these trees are not measured, because each of them has
some of the keys only. Their results together are. Histograms of the keys come from the same sketches.

A selectivity that was measured under an earlier plan is remembered, and scaled as the sketches of its keys change. All
selectivities that the running plan does not measure are multiplied by `caution`: a planner picks the plan that looks
cheapest, so it tends to pick the one that is underestimated most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from statistics import fmean

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.join_sizes import sizes_of_joins
from braid.adapt.network.key_histograms import histograms_of
from braid.adapt.observation import KeyColumn
from braid.adapt.sketch import KeySketch, estimate_share
from braid.model.query import Query
from braid.model.statistics import Sized, Statistics, Subject
from braid.model.window import FOREVER
from braid.planning.cost.figures import Expected
from braid.planning.problem import Problem
from braid.planning.solution.written import Written, divided_inputs

SLOWEST = 1e-9
"""The least rate that sizes are weighted by, in rows per second."""

TOLD = 2.0
"""By which factor the estimate from sketches must change to count: they have not seen all keys."""

SECOND = 1_000_000

UNBOUNDED_SECONDS = 3_600.0
"""The length that is assumed for windows without an end."""


@dataclass(frozen=True)
class _Remembered:
    """A selectivity that was measured, and the estimate from the sketches of the keys at that time."""

    share: float
    estimate: float | None


class NetworkMonitor:
    """Collects the figures of sites, in any order. The last ones of each site count."""

    def __init__(self, query: Query, origins: Mapping[str, str], sink: str | None = None) -> None:
        self._query = query
        self._origins = dict(origins)
        self._sink = sink
        self.caution = 1.0
        self._generation = INTAKES
        self._figures: dict[tuple[int, str], SiteFigures] = {}
        self._remembered: dict[frozenset[str], _Remembered] = {}
        self._divided: list[list[frozenset[str]]] = []
        """The inputs of each join of the running plan that has a tree for each part of the keys."""
        self.version = 0
        """Grows with everything taken in: as long as it stays the same, so do the statistics."""

    @classmethod
    def of(cls, problem: Problem) -> NetworkMonitor:
        """A monitor for the query of a problem."""
        names = problem.topology.names
        origins = {alias: names[site] for alias, site in zip(problem.streams, problem.origins, strict=True)}
        return cls(problem.query, origins, None if problem.sink is None else names[problem.sink])

    @property
    def figures(self) -> tuple[SiteFigures, ...]:
        """The last figures of each site."""
        return tuple(self._figures.values())

    def hear(self, figures: SiteFigures) -> bool:
        """Take in the figures of a site; False if they are of another generation, or older than what is known."""
        if figures.generation not in (INTAKES, self._generation):
            return False
        known = self._figures.get(figures.source)
        if known is not None and known.reached >= figures.reached:
            return False
        self._figures[figures.source] = figures
        self.version += 1
        return True

    def follow(self, generation: int, plan: Written | None = None) -> None:
        """Use the figures of another generation, with this plan.

        Selectivities that were measured under the last one are remembered.
        """
        if generation != self._generation:
            self._remember()
            self._generation = generation
            self._divided = divided_inputs(plan)
            self.version += 1
            self._figures = {
                source: figures for source, figures in self._figures.items() if source[0] in (INTAKES, generation)
            }

    def statistics(self) -> Statistics | None:
        """The statistics by the figures known now; None as long as the rate of a stream is unknown."""
        if not self.is_complete:
            return None
        self._remember()
        return self._statistics()

    @property
    def is_complete(self) -> bool:
        """Whether the rates of all streams are known."""
        return self._rates().keys() >= set(self._query.aliases)

    def guess(self) -> Statistics:
        """The statistics by the figures known now. A stream whose rate is unknown counts with one row a second."""
        return self._statistics()

    def _statistics(self) -> Statistics:
        alone = self._alone()
        measured = self._measured(alone)
        estimates = self._estimates()
        shares = {
            streams: share.share * _moved(share.estimate, self._estimate(streams, estimates))
            for streams, share in self._remembered.items()
        }
        for pair, share in self._corrected(estimates, {**shares, **measured}).items():
            shares.setdefault(pair, share)
        known: dict[Subject, float] = {
            streams: min(1.0, share) for streams, share in {**self._raised(shares), **measured}.items()
        }
        always = self._not_implied(alone, known)
        sizes = self._sizes()
        of_streams = replace(
            alone, selectivities={**always, **known}, fanouts=self._fanouts(alone), sizes=sizes, populations={}
        )
        batches: dict[str, float] = {}
        for figures in self._figures.values():
            batches |= figures.batches
        return replace(
            of_streams,
            sizes={**sizes_of_joins(self._query, of_streams, batches), **sizes},
            histograms=histograms_of(self._query, self._keys(), alone.rates),
            batches=batches,
            loads=loads_of(self._figures.values()),
        )

    def _raised(self, shares: Mapping[frozenset[str], float]) -> dict[frozenset[str], float]:
        """Shares that are not measured, with caution: that of all streams is raised by the whole factor."""
        most = max(1, len(self._query.aliases) - 1)
        return {streams: share * self.caution ** ((len(streams) - 1) / most) for streams, share in shares.items()}

    def _fanouts(self, alone: Statistics) -> dict[tuple[str, frozenset[str]], float]:
        """The combinations that a new row of a head makes, once all windows are full."""
        full = replace(alone, populations={})
        filled = {
            alias: (full.population(self._query.source(alias)) or 0.0) / population
            for alias, population in alone.populations.items()
            if population
        }
        return {
            of: rate / alone.rates[of[0]] * prod(filled.get(alias, 1.0) for alias in of[1] - {of[0]})
            for of, rate in self._rates().items()
            if isinstance(of, tuple) and alone.rates.get(of[0])
        }

    def _corrected(
        self, estimates: Mapping[frozenset[str], float], known: Mapping[frozenset[str], float]
    ) -> dict[frozenset[str], float]:
        """The estimates of pairs that do not follow from known ones, times what others turned out to be wrong by."""
        corrected = {}
        for pair, share in estimates.items():
            if not self._is_implied(pair, known):
                alike = [other for other in estimates if other in known and self._classes(pair) & self._classes(other)]
                estimated = sum(estimates[other] for other in alike)
                wrong_by = sum(known[other] for other in alike) / estimated if estimated else 1.0
                corrected[pair] = share * wrong_by
        return corrected

    def _not_implied(self, alone: Statistics, known: Mapping[Subject, float]) -> dict[Subject, float]:
        """The conditions that nothing is known of, with what is assumed of them."""
        pairs = {streams: share for streams, share in known.items() if isinstance(streams, frozenset)}
        return {
            subject: share
            for subject, share in alone.selectivities.items()
            if isinstance(subject, str) or not self._is_implied(subject, pairs)
        }

    def _is_implied(self, pair: frozenset[str], known: Mapping[frozenset[str], float]) -> bool:
        """Whether known pairs connect these two streams in each of their classes, so that their share follows."""
        one, other = pair
        return bool(self._classes(pair)) and all(
            other in _connected(one, [two for two in known if len(two) == 2 and number in self._classes(two)])
            for number in self._classes(pair)
        )

    def _classes(self, pair: frozenset[str]) -> frozenset[int]:
        """The attribute classes that both streams have a key in."""
        return frozenset(
            number for number, one in enumerate(self._query.graph.classes) if pair <= frozenset(one.sources)
        )

    def _alone(self) -> Statistics:
        """The statistics as if all conditions always held.

        Rows are counted after the conditions on their stream alone, so these are no part of a selectivity.
        """
        rates = {alias: rate for alias, rate in self._rates().items() if isinstance(alias, str)}
        always: dict[Subject, float] = {str(predicate): 1.0 for predicate in self._query.graph.residuals}
        always |= {str(predicate): 1.0 for _, predicate in self._query.graph.selections}
        for attribute_class in self._query.graph.classes:
            always |= {frozenset(pair): 1.0 for pair in combinations(sorted(attribute_class.sources), 2)}
        return Statistics(
            rates={alias: rates.get(alias, 1.0) for alias in self._query.aliases},
            selectivities=always,
            lengths=dict.fromkeys(self._query.aliases, UNBOUNDED_SECONDS),
            sites=self._origins,
            populations=self._filling(rates),
        )

    def _filling(self, rates: Mapping[str, float]) -> dict[str, float]:
        """The rows in the windows that are not full yet: all that their streams have brought so far."""
        filling = {}
        for figures in self._figures.values():
            for alias, rows in figures.rows.items():
                lifetime = self._query.source(alias).window.lifetime
                if lifetime is not None and lifetime != FOREVER and rows < rates.get(alias, 0.0) * lifetime / SECOND:
                    filling[alias] = rows
        return filling

    def _rates(self) -> dict[Sized, float]:
        """Rows per second, added up over all sites, because each may make a part of a join."""
        total: dict[Sized, float] = {}
        for figures in self._figures.values():
            for of, rate in figures.rates.items():
                if not self._is_of_some_keys(of):
                    total[of] = total.get(of, 0.0) + rate
        return total

    def _is_of_some_keys(self, of: Sized) -> bool:
        """Whether only rows with some of the keys are joined so: parts of the keys may have different trees."""
        if not isinstance(of, frozenset):
            return False
        return any(
            of < frozenset[str]().union(*inputs) and not any(of <= streams for streams in inputs)
            for inputs in self._divided
        )

    def _sizes(self) -> dict[Sized, float]:
        """Bytes per row. A stream that has brought no rows yet counts as wide as the mean of the others."""
        bytes_per_second: dict[Sized, float] = {}
        rows_per_second: dict[Sized, float] = {}
        everything = frozenset(self._query.aliases)
        for figures in self._figures.values():
            for of, size in figures.sizes.items():
                if figures.site == self._sink and of == everything:
                    continue  # Results that are made where they are wanted do not travel.
                weight = max(figures.rates.get(of, 0.0), SLOWEST)
                bytes_per_second[of] = bytes_per_second.get(of, 0.0) + size * weight
                rows_per_second[of] = rows_per_second.get(of, 0.0) + weight
        sizes = {of: total / rows_per_second[of] for of, total in bytes_per_second.items()}
        of_streams = [size for of, size in sizes.items() if isinstance(of, str)]
        mean_size = fmean(of_streams) if of_streams else 1.0
        return {**dict.fromkeys(self._query.aliases, mean_size), **sizes}

    def _measured(self, alone: Statistics) -> dict[frozenset[str], float]:
        """The selectivities of the joins whose rows a channel counted, or a site sampled."""
        expected = Expected.of(self._query, alone)
        made: dict[frozenset[str], float] = {}
        unfiltered: dict[frozenset[str], float] = {}
        for of, rate in self._rates().items():
            if isinstance(of, tuple) and len(of[1]) == 2:
                head, streams = self._query.aliases.index(of[0]), of[1]
                made[streams] = made.get(streams, 0.0) + rate
                unfiltered[streams] = unfiltered.get(streams, 0.0) + expected.flow(head, self._mask(streams))
        for of, rate in self._rates().items():
            if isinstance(of, frozenset):
                made[of], unfiltered[of] = rate, expected.rate(self._mask(of))
        return {streams: rate / unfiltered[streams] for streams, rate in made.items() if unfiltered[streams]}

    def _mask(self, streams: frozenset[str]) -> int:
        return sum(1 << self._query.aliases.index(alias) for alias in streams)

    def _remember(self) -> None:
        estimates = self._estimates()
        for streams, share in self._measured(self._alone()).items():
            self._remembered[streams] = _Remembered(share, self._estimate(streams, estimates))

    def _estimates(self) -> dict[frozenset[str], float]:
        """The selectivity of each pair of streams whose keys are sketched, estimated from the sketches."""
        keys = self._keys()
        estimates: dict[frozenset[str], float] = {}
        for class_number, attribute_class in enumerate(self._query.graph.classes):
            for one, other in combinations(sorted(attribute_class.sources), 2):
                ours, theirs = keys.get((one, class_number)), keys.get((other, class_number))
                share = None if ours is None or theirs is None else estimate_share(ours, theirs)
                if share is not None:
                    pair = frozenset((one, other))
                    estimates[pair] = estimates.get(pair, 1.0) * share
        return estimates

    def _keys(self) -> dict[KeyColumn, KeySketch]:
        """The sketches of all join keys."""
        keys: dict[KeyColumn, KeySketch] = {}
        for figures in self._figures.values():
            keys |= figures.keys
        return keys

    def _estimate(self, streams: frozenset[str], estimates: Mapping[frozenset[str], float]) -> float | None:
        """The estimate for some streams from those of all pairs among them; None if there is none.

        Of the pairs of one class, one less than its streams would do: so each counts for a part.
        """
        shares = [share for pair, share in estimates.items() if pair <= streams]
        return prod(shares) ** min(1.0, (len(streams) - 1) / len(shares)) if shares else None


def loads_of(figures: Iterable[SiteFigures]) -> dict[str, float]:
    """The load of each site whose load is known: of its intakes and its joins together."""
    loads: dict[str, float] = {}
    for told in figures:
        if told.load is not None:
            loads[told.site] = loads.get(told.site, 0.0) + told.load
    return loads


def _moved(before: float | None, now: float | None) -> float:
    """The factor by which an estimate has changed; 1.0 if it is not known, or no more than sketches can tell."""
    factor = now / before if before and now is not None else 1.0
    return factor if not 1 / TOLD <= factor <= TOLD else 1.0


def _connected(one: str, pairs: Sequence[frozenset[str]]) -> set[str]:
    """The streams that pairs connect with one of them."""
    reached: set[str] = {one}
    while True:
        more = reached.union(*(pair for pair in pairs if pair & reached))
        if more == reached:
            return reached
        reached = more
