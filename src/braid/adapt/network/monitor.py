"""The statistics of a query over a network, from the figures of its sites.

Every stream that enters the query or leaves a site is on a channel, which counts its rows and bytes. So the rate of
each join that the running plan ships is measured. Its selectivity is that rate, divided by the rate that the join would
have if all conditions always held. Other joins are estimated: from samples, if one site has all their streams, or else
from the sketches of their keys. Histograms of the keys come from the same sketches.

If each part of the keys has a tree of its own, a join within such a tree has only some of the keys, so it says nothing
about all of them. Only the results of all parts together are measured.

A selectivity that was measured under an earlier plan is remembered, and scaled as the sketches of its keys change. All
selectivities that the running plan does not measure are raised, by up to the factor `caution`: a planner picks the plan
that looks cheapest, so it tends to pick the one that is underestimated most.
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

LEAST_WEIGHT = 1e-9
"""The least rate that sizes are weighted by, in rows per second."""

CLEAR_CHANGE = 2.0
"""An estimate from sketches has changed if it has by more than this factor: sketches have not seen all keys."""

SECOND = 1_000_000

UNBOUNDED_SECONDS = 3_600.0
"""The length that is assumed for windows without an end."""


@dataclass(frozen=True)
class _Remembered:
    """A selectivity that was measured, and the estimate from the sketches of the keys at that time."""

    share: float
    estimate: float | None


class NetworkMonitor:
    """Collects the figures of sites, in any order. Only the last figures of each site count."""

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
        """Grows with everything that changes the statistics: as long as it stays the same, so do they."""

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
        """Take in the figures of a site; False if they are of another generation, or not newer than those known."""
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

        Selectivities that were measured under the generation before are remembered.
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
        unfiltered = self._unfiltered()
        measured = self._measured(unfiltered)
        estimates = self._estimates()
        not_measured = {
            streams: earlier.share * _change(earlier.estimate, self._estimate(streams, estimates))
            for streams, earlier in self._remembered.items()
        }
        for pair, share in self._corrected(estimates, {**not_measured, **measured}).items():
            not_measured.setdefault(pair, share)
        known: dict[Subject, float] = {
            streams: min(1.0, share) for streams, share in {**self._raised(not_measured), **measured}.items()
        }
        assumed = self._not_implied(unfiltered, known)
        sizes = self._sizes()
        of_streams = replace(
            unfiltered,
            selectivities={**assumed, **known},
            fanouts=self._fanouts(unfiltered),
            sizes=sizes,
            populations={},
        )
        batches: dict[str, float] = {}
        for figures in self._figures.values():
            batches |= figures.batches
        return replace(
            of_streams,
            sizes={**sizes_of_joins(self._query, of_streams, batches), **sizes},
            histograms=histograms_of(self._query, self._keys(), unfiltered.rates),
            batches=batches,
            loads=loads_of(self._figures.values()),
        )

    def _raised(self, shares: Mapping[frozenset[str], float]) -> dict[frozenset[str], float]:
        """Shares raised by caution: that of all streams by the whole factor, and others by less."""
        all_joins = max(1, len(self._query.aliases) - 1)
        return {streams: share * self.caution ** ((len(streams) - 1) / all_joins) for streams, share in shares.items()}

    def _fanouts(self, unfiltered: Statistics) -> dict[tuple[str, frozenset[str]], float]:
        """The combinations that a new row of a head makes, once all windows are full."""
        full = replace(unfiltered, populations={})
        growth = {
            alias: (full.population(self._query.source(alias)) or 0.0) / population
            for alias, population in unfiltered.populations.items()
            if population
        }
        fanouts: dict[tuple[str, frozenset[str]], float] = {}
        for of, rate in self._rates().items():
            if isinstance(of, tuple) and unfiltered.rates.get(of[0]):
                head, streams = of
                others_growth = prod(growth.get(alias, 1.0) for alias in streams - {head})
                fanouts[of] = rate / unfiltered.rates[head] * others_growth
        return fanouts

    def _corrected(
        self, estimates: Mapping[frozenset[str], float], known: Mapping[frozenset[str], float]
    ) -> dict[frozenset[str], float]:
        """The estimates of pairs that known pairs do not imply.

        Each is corrected by the factor by which the estimates of known pairs of the same classes are wrong.
        """
        corrected = {}
        for pair, share in estimates.items():
            if not self._is_implied(pair, known):
                alike = [other for other in estimates if other in known and self._classes(pair) & self._classes(other)]
                estimated = sum(estimates[other] for other in alike)
                wrong_by = sum(known[other] for other in alike) / estimated if estimated else 1.0
                corrected[pair] = share * wrong_by
        return corrected

    def _not_implied(self, unfiltered: Statistics, known: Mapping[Subject, float]) -> dict[Subject, float]:
        """The assumed selectivities of the conditions that known ones do not imply."""
        known_joins = {streams: share for streams, share in known.items() if isinstance(streams, frozenset)}
        return {
            subject: share
            for subject, share in unfiltered.selectivities.items()
            if isinstance(subject, str) or not self._is_implied(subject, known_joins)
        }

    def _is_implied(self, pair: frozenset[str], known: Mapping[frozenset[str], float]) -> bool:
        """Whether known pairs connect these two streams in each of their classes, so that their share follows."""
        one, other = pair
        for class_number in self._classes(pair):
            known_pairs = [streams for streams in known if len(streams) == 2 and class_number in self._classes(streams)]
            if other not in _connected(one, known_pairs):
                return False
        return bool(self._classes(pair))

    def _classes(self, pair: frozenset[str]) -> frozenset[int]:
        """The numbers of the attribute classes in which both streams have a key."""
        return frozenset(
            class_number
            for class_number, attribute_class in enumerate(self._query.graph.classes)
            if pair <= frozenset(attribute_class.sources)
        )

    def _unfiltered(self) -> Statistics:
        """The statistics as if all conditions always held.

        Rows are counted after the conditions on their stream alone, so these are no part of a selectivity.
        """
        rates = {alias: rate for alias, rate in self._rates().items() if isinstance(alias, str)}
        selectivities: dict[Subject, float] = {str(predicate): 1.0 for predicate in self._query.graph.residuals}
        selectivities |= {str(predicate): 1.0 for _, predicate in self._query.graph.selections}
        for attribute_class in self._query.graph.classes:
            selectivities |= {frozenset(pair): 1.0 for pair in combinations(sorted(attribute_class.sources), 2)}
        return Statistics(
            rates={alias: rates.get(alias, 1.0) for alias in self._query.aliases},
            selectivities=selectivities,
            lengths=dict.fromkeys(self._query.aliases, UNBOUNDED_SECONDS),
            sites=self._origins,
            populations=self._partly_filled(rates),
        )

    def _partly_filled(self, rates: Mapping[str, float]) -> dict[str, float]:
        """The rows in the windows that are not full yet: all that their streams have brought so far."""
        populations = {}
        for figures in self._figures.values():
            for alias, rows in figures.rows.items():
                lifetime = self._query.source(alias).window.lifetime
                if lifetime is not None and lifetime != FOREVER and rows < rates.get(alias, 0.0) * lifetime / SECOND:
                    populations[alias] = rows
        return populations

    def _rates(self) -> dict[Sized, float]:
        """Rows per second, added up over all sites, because several sites may make parts of one join."""
        total: dict[Sized, float] = {}
        for figures in self._figures.values():
            for of, rate in figures.rates.items():
                if not self._is_of_some_keys(of):
                    total[of] = total.get(of, 0.0) + rate
        return total

    def _is_of_some_keys(self, of: Sized) -> bool:
        """Whether a join is within the tree of a part of the keys, so that it has only rows with some of them."""
        if not isinstance(of, frozenset):
            return False
        for inputs in self._divided:
            joined_streams = frozenset[str]().union(*inputs)
            if of < joined_streams and not any(of <= streams for streams in inputs):
                return True
        return False

    def _sizes(self) -> dict[Sized, float]:
        """Bytes per row. For a stream that has brought no rows yet, the mean of the other streams is assumed."""
        bytes_per_second: dict[Sized, float] = {}
        rows_per_second: dict[Sized, float] = {}
        everything = frozenset(self._query.aliases)
        for figures in self._figures.values():
            for of, size in figures.sizes.items():
                if figures.site == self._sink and of == everything:
                    continue  # Results that are made where they are wanted do not travel.
                weight = max(figures.rates.get(of, 0.0), LEAST_WEIGHT)
                bytes_per_second[of] = bytes_per_second.get(of, 0.0) + size * weight
                rows_per_second[of] = rows_per_second.get(of, 0.0) + weight
        sizes = {of: total / rows_per_second[of] for of, total in bytes_per_second.items()}
        sizes_of_streams = [size for of, size in sizes.items() if isinstance(of, str)]
        mean_size = fmean(sizes_of_streams) if sizes_of_streams else 1.0
        return {**dict.fromkeys(self._query.aliases, mean_size), **sizes}

    def _measured(self, unfiltered: Statistics) -> dict[frozenset[str], float]:
        """The selectivities of the joins whose rows a channel counted, or a site sampled."""
        expected = Expected.of(self._query, unfiltered)
        made: dict[frozenset[str], float] = {}
        possible: dict[frozenset[str], float] = {}
        for of, rate in self._rates().items():
            if isinstance(of, tuple) and len(of[1]) == 2:
                head, streams = self._query.aliases.index(of[0]), of[1]
                made[streams] = made.get(streams, 0.0) + rate
                possible[streams] = possible.get(streams, 0.0) + expected.flow(head, self._mask(streams))
        for of, rate in self._rates().items():
            if isinstance(of, frozenset):
                made[of], possible[of] = rate, expected.rate(self._mask(of))
        return {streams: rate / possible[streams] for streams, rate in made.items() if possible[streams]}

    def _mask(self, streams: frozenset[str]) -> int:
        """The streams as bits, as `Expected` takes them."""
        return sum(1 << self._query.aliases.index(alias) for alias in streams)

    def _remember(self) -> None:
        estimates = self._estimates()
        for streams, share in self._measured(self._unfiltered()).items():
            self._remembered[streams] = _Remembered(share, self._estimate(streams, estimates))

    def _estimates(self) -> dict[frozenset[str], float]:
        """The selectivity of each pair of streams whose keys are sketched, estimated from the sketches."""
        keys = self._keys()
        estimates: dict[frozenset[str], float] = {}
        for class_number, attribute_class in enumerate(self._query.graph.classes):
            for left, right in combinations(sorted(attribute_class.sources), 2):
                left_keys, right_keys = keys.get((left, class_number)), keys.get((right, class_number))
                share = None if left_keys is None or right_keys is None else estimate_share(left_keys, right_keys)
                if share is not None:
                    pair = frozenset((left, right))
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

        Joining n streams takes n - 1 pairs. If more pairs have estimates, their geometric mean counts n - 1 times.
        """
        shares = [share for pair, share in estimates.items() if pair <= streams]
        return prod(shares) ** min(1.0, (len(streams) - 1) / len(shares)) if shares else None


def loads_of(figures: Iterable[SiteFigures]) -> dict[str, float]:
    """The load of each site whose load is known: that of its intakes and its joins together."""
    loads: dict[str, float] = {}
    for of_site in figures:
        if of_site.load is not None:
            loads[of_site.site] = loads.get(of_site.site, 0.0) + of_site.load
    return loads


def _change(before: float | None, now: float | None) -> float:
    """The factor by which an estimate has changed; 1.0 if the factor is not known, or too small to be certain."""
    factor = now / before if before and now is not None else 1.0
    return 1.0 if 1 / CLEAR_CHANGE <= factor <= CLEAR_CHANGE else factor


def _connected(stream: str, pairs: Sequence[frozenset[str]]) -> set[str]:
    """The streams that pairs connect with a stream, and this stream."""
    reached: set[str] = {stream}
    while True:
        more = reached.union(*(pair for pair in pairs if pair & reached))
        if more == reached:
            return reached
        reached = more
