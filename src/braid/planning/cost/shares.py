"""The share of combinations of a set of streams that satisfies every condition between them.

Members of one attribute class that are all equal are tied by a spanning tree of equalities: one of those that were
given, as far as these reach, and of all such trees the one that passes most, because with uniform keys `a = b` passes
one in the larger of both domains, and a join over the class divides by every domain but the smallest. An equality that
follows from others and was not given passes as much as the least selective of those it follows from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from math import prod

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError
from braid.model.expressions.expression import Column
from braid.model.graph import AttributeClass
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.histograms import value_rates

Floats = NDArray[np.float64]

ALL_AT_ONCE = 10
"""The shares of all sets of up to so many streams take less time together than a few of them one by one."""


@dataclass(frozen=True)
class Shares:
    """`classes` hold, of each pair of streams in each attribute class, the selectivity that was given (0 where none
    was) and the one that follows from the others."""

    streams: int
    classes: tuple[tuple[Floats, Floats], ...]
    residuals: tuple[tuple[int, float], ...]
    measured: Mapping[int, float]

    @classmethod
    def of(cls, query: Query, statistics: Statistics) -> Shares:
        measured = _measured_sets(query, statistics)
        known_pairs = _left_of_pairs(query, statistics, measured)
        classes = tuple(_pairs(query, statistics, tied, known_pairs) for tied in query.graph.classes)
        residuals = []
        for predicate in query.graph.residuals:
            mask = _mask(query, predicate.sources)
            share = statistics.share(*predicate.spellings)
            if share is None and mask in known_pairs:
                share = known_pairs[mask]
                known_pairs[mask] = 1.0
            if share is None and mask not in measured:
                raise _unknown(str(predicate))
            residuals.append((mask, 1.0 if share is None else share))
        larger = {mask: share for mask, share in measured.items() if mask.bit_count() > 2}
        return cls(len(query.aliases), classes, tuple(residuals), larger)

    def share(self, mask: int) -> float:
        """The share of one set."""
        known = self._known.get(mask)
        if known is None:
            known = self._known[mask] = self._share(mask)
        return known

    def _share(self, mask: int) -> float:
        measured = max((part for part in self.measured if part & ~mask == 0), key=_order, default=0)
        share = self.measured.get(measured, 1.0)
        for number, members in enumerate(self._members):
            share *= self._tie(number, mask & members, measured & members)
        for condition, passing in self.residuals:
            share *= passing if condition & ~mask == 0 and condition & ~measured else 1.0
        return share

    @cached_property
    def table(self) -> Floats:
        """The shares of all sets, by mask."""
        masks = np.arange(1 << self.streams, dtype=np.int64)
        measured = np.zeros_like(masks)
        for mask in sorted(self.measured, key=_order):
            measured[masks & mask == mask] = mask
        shares = np.ones(len(masks))
        for mask, share in self.measured.items():
            shares[measured == mask] = share
        for members, (given, implied) in zip(self._members, self.classes, strict=True):
            # Sets that have the same streams of a class have the same share of it: look at each only once.
            seen = (masks & members) << self.streams | (measured & members)
            different, which = np.unique(seen, return_inverse=True)
            within, tied = different >> self.streams, different & members
            shares *= _spanning(self._bits(within), self._bits(tied), given, implied)[which]
        for mask, share in self.residuals:
            shares[(masks & mask == mask) & (measured & mask != mask)] *= share
        return shares

    @cached_property
    def _members(self) -> tuple[int, ...]:
        """The streams of each class."""
        return tuple(
            sum(1 << int(stream) for stream in np.flatnonzero(implied.any(axis=1))) for _, implied in self.classes
        )

    def _tie(self, number: int, within: int, tied: int) -> float:
        """The share of a class in a set that has these streams of it, of which some are measured."""
        if within.bit_count() < 2:
            return 1.0
        key = (number, within, tied)
        if key not in self._ties:
            rows = [np.array([[mask >> stream & 1 == 1 for stream in range(self.streams)]]) for mask in (within, tied)]
            self._ties[key] = float(_spanning(rows[0], rows[1], *self.classes[number])[0])
        return self._ties[key]

    def _bits(self, masks: NDArray[np.int64]) -> NDArray[np.bool_]:
        bits: NDArray[np.bool_] = (masks[:, None] >> np.arange(self.streams)) & 1 == 1
        return bits

    @cached_property
    def _known(self) -> dict[int, float]:
        return dict(enumerate(self.table.tolist())) if self.streams <= ALL_AT_ONCE else {}

    @cached_property
    def _ties(self) -> dict[tuple[int, int, int], float]:
        return {}


def _order(mask: int) -> tuple[int, int]:
    """What was measured of more streams counts more; of equals, the last."""
    return mask.bit_count(), mask


def _spanning(within: NDArray[np.bool_], tied: NDArray[np.bool_], given: Floats, implied: Floats) -> Floats:
    """Product of the best spanning tree over the members of a class in each set; those `tied` cost nothing more."""
    rows = np.arange(len(within))
    of_class = within & (implied > 0).any(axis=1)
    joined = tied & of_class
    joined[rows, np.where(joined.any(axis=1), joined.argmax(axis=1), of_class.argmax(axis=1))] = True
    product = np.ones(len(within))
    reach_given = np.where(joined[:, :, None], given, 0.0).max(axis=1)
    reach_implied = np.where(joined[:, :, None], implied, 0.0).max(axis=1)
    for _ in range(int(of_class.sum(axis=1).max(initial=0)) - 1):
        # What was given goes before what only follows: shares are at most 1, so 2 is above them all.
        reach = np.where(reach_given > 0, reach_given + 2, reach_implied)
        following = np.where(of_class & ~joined, reach, -1.0).argmax(axis=1)
        growing = (of_class & ~joined)[rows, following]
        best_given = reach_given[rows, following]
        factor = np.where(best_given > 0, best_given, reach_implied[rows, following])
        product[growing] *= factor[growing]
        joined[growing, following[growing]] = True
        reach_given = np.maximum(reach_given, np.where(growing[:, None], given[following], 0.0))
        reach_implied = np.maximum(reach_implied, np.where(growing[:, None], implied[following], 0.0))
    return product


def _pairs(
    query: Query, statistics: Statistics, tied: AttributeClass, known: dict[int, float]
) -> tuple[Floats, Floats]:
    """Selectivities between the members of a class: those given, and for every pair what follows from them."""
    given = np.zeros((len(query.aliases),) * 2)
    owners = [source for source in query.aliases if source in tied.sources]
    for left, right in combinations(owners, 2):
        share = _given(statistics, tied, left, right)
        mask = _mask(query, (left, right))
        if share is None and mask in known:
            # The figure of a set of two counts once, however many conditions are between them.
            share = known[mask]
            known[mask] = 1.0
        if share is None:
            share = _from_histograms(query, statistics, tied, left, right)
        if share is not None:
            ends = query.aliases.index(left), query.aliases.index(right)
            # A selectivity of exactly zero still is a tie.
            given[ends] = given[ends[::-1]] = max(share, np.finfo(float).tiny)
    weakest = _weakest_ties(given)
    implied = np.zeros_like(given)
    for left, right in permutations(owners, 2):
        ends = query.aliases.index(left), query.aliases.index(right)
        if np.isinf(weakest[ends]):
            raise _unknown(f"{tied.key(left)} = {tied.key(right)}")
        implied[ends] = given[ends] or weakest[ends]
    return given, implied


def _weakest_ties(pairs: Floats) -> Floats:
    """For each two streams, the largest selectivity on the path between them that keeps this largest one smallest."""
    worst = np.where(pairs > 0, pairs, np.inf)
    for middle in range(len(pairs)):
        worst = np.minimum(worst, np.maximum(worst[:, middle, None], worst[None, middle, :]))
    return worst


def _given(statistics: Statistics, tied: AttributeClass, left: str, right: str) -> float | None:
    """The selectivity of an equality between two streams, however it is written."""
    of_left = [str(expression) for owner, expression in tied.members if owner == left]
    of_right = [str(expression) for owner, expression in tied.members if owner == right]
    pairs = [pair for one in of_left for other in of_right for pair in ((one, other), (other, one))]
    return statistics.share(*(f"{one} = {other}" for one, other in pairs))


def _from_histograms(query: Query, statistics: Statistics, tied: AttributeClass, left: str, right: str) -> float | None:
    """The selectivity of an equality, from how often both columns have each value; None where that is not known."""
    histograms = []
    for alias in (left, right):
        key = tied.key(alias)
        histogram = statistics.histogram(query.source(alias), key.name) if isinstance(key, Column) else None
        if histogram is None:
            return None
        histograms.append(histogram)
    _, counts, rates = value_rates(histograms)
    totals = np.array([[sum(histogram.values())] for histogram in histograms])
    return float(((rates / totals).prod(axis=0) * counts).sum()) if totals.all() else 0.0


def _measured_sets(query: Query, statistics: Statistics) -> dict[int, float]:
    return {
        _mask(query, subject): share
        for subject, share in statistics.selectivities.items()
        if isinstance(subject, frozenset) and subject <= frozenset(query.aliases)
    }


def _left_of_pairs(query: Query, statistics: Statistics, measured: Mapping[int, float]) -> dict[int, float]:
    """What conditions between two streams pass that were not given themselves, where the set of both was measured.

    The figure of the set is of all conditions between the two, so that those given have their part in it.
    """
    left = {mask: share for mask, share in measured.items() if mask.bit_count() == 2}
    for mask, share in left.items():
        one, other = (alias for number, alias in enumerate(query.aliases) if mask >> number & 1)
        tied = (found for found in query.graph.classes if {one, other} <= found.sources)
        given = [_given(statistics, found, one, other) for found in tied]
        given += [
            statistics.share(*found.spellings) for found in query.graph.residuals if found.sources == {one, other}
        ]
        passed = prod(found for found in given if found is not None)
        left[mask] = min(share / passed, 1.0) if passed else 1.0
    return left


def _mask(query: Query, streams: Iterable[str]) -> int:
    return sum(1 << query.aliases.index(stream) for stream in streams)


def _unknown(condition: str) -> PlanningError:
    return PlanningError(
        f"the selectivity of {condition} is not known; "
        f"give Statistics(selectivities={{'{condition}': ..}}), or one of a set of streams"
    )
