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

from collections.abc import Mapping
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
from braid.planning.cost.figures import Expected
from braid.planning.problem import Problem
from braid.planning.solution.written import Written, divided_inputs

SLOWEST = 1e-9
"""The least rate that sizes are weighted by, in rows per second."""

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
        rates = self._rates()
        if any(alias not in rates for alias in self._query.aliases):
            return None
        self._remember()
        return self._statistics()

    def guess(self) -> Statistics:
        """The statistics by the figures known now. A stream whose rate is unknown counts with one row a second."""
        return self._statistics()

    def _statistics(self) -> Statistics:
        alone = self._alone()
        rates = self._rates()
        fanouts = {
            of: rate / alone.rates[of[0]]
            for of, rate in rates.items()
            if isinstance(of, tuple) and alone.rates.get(of[0])
        }
        estimates = self._estimates()
        shares = {pair: self.caution * share for pair, share in estimates.items()}
        for streams, remembered in self._remembered.items():
            now = remembered.share * _moved(remembered.estimate, self._estimate(streams, estimates))
            shares[streams] = self.caution * now
        shares |= self._measured(alone)
        known: dict[Subject, float] = {streams: min(1.0, share) for streams, share in shares.items()}
        measured = self._sizes()
        of_streams = replace(alone, selectivities={**alone.selectivities, **known}, fanouts=fanouts, sizes=measured)
        batches: dict[str, float] = {}
        for figures in self._figures.values():
            batches |= figures.batches
        return replace(
            of_streams,
            sizes={**sizes_of_joins(self._query, of_streams, batches), **measured},
            histograms=histograms_of(self._query, self._keys(), alone.rates),
            batches=batches,
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
        )

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
        shares = {}
        for of, rate in self._rates().items():
            if isinstance(of, frozenset):
                unfiltered = expected.rate(sum(1 << self._query.aliases.index(alias) for alias in of))
                if unfiltered:
                    shares[of] = rate / unfiltered
        return shares

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
        """The product of the estimates of all pairs among some streams; None if there is none."""
        shares = [share for pair, share in estimates.items() if pair <= streams]
        return prod(shares) if shares else None


def _moved(before: float | None, now: float | None) -> float:
    """The factor by which an estimate has changed; 1.0 if it is not known."""
    return now / before if before and now is not None else 1.0
