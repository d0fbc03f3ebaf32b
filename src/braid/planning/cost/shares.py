"""The share of combinations of a set of streams that satisfy every condition between them.

The equalities of one attribute class are not independent: a spanning tree of them implies the rest. The share of a
class is the product of selectivities along a spanning tree, where selectivities that the statistics give come before
those that are only implied, and among these trees the one with the largest product. With uniform keys `a = b` passes
one in the larger of both domains, so that a join over the class divides by every domain but the smallest. An equality
that is only implied passes as much as the least selective equality it follows from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
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
"""Up to this many streams, computing the shares of all sets at once is faster than a few of them one by one."""


@dataclass(frozen=True)
class Shares:
    """The selectivities of a query, from which the share of each set of streams follows.

    `classes` has two matrices for each attribute class, by pairs of streams: the selectivities that were given (0 where
    none was), and those with the implied ones filled in. `residuals` has the streams and the selectivity of each
    residual. `measured` has the shares that statistics give for whole sets of more than two streams.
    """

    streams: int
    classes: tuple[tuple[Floats, Floats], ...]
    residuals: tuple[tuple[int, float], ...]
    measured: Mapping[int, float]

    @classmethod
    def of(cls, query: Query, statistics: Statistics) -> Shares:
        measured = _measured_sets(query, statistics)
        known_pairs = _shares_left_to_pairs(query, statistics, measured)
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
        """The share of one set of streams."""
        known = self._known.get(mask)
        if known is None:
            known = self._known[mask] = self._share(mask)
        return known

    def _share(self, mask: int) -> float:
        measured = max((subset for subset in self.measured if subset & ~mask == 0), key=_order, default=0)
        share = self.measured.get(measured, 1.0)
        for class_number, members in enumerate(self._members):
            share *= self._tie(class_number, mask & members, measured & members)
        for streams, passing in self.residuals:
            if streams & ~mask == 0 and streams & ~measured:
                share *= passing
        return share

    @cached_property
    def table(self) -> Floats:
        """The shares of all sets of streams, indexed by mask."""
        masks = np.arange(1 << self.streams, dtype=np.int64)
        measured = np.zeros_like(masks)
        for mask in sorted(self.measured, key=_order):
            measured[masks & mask == mask] = mask
        shares = np.ones(len(masks))
        for mask, share in self.measured.items():
            shares[measured == mask] = share
        for members, (given, implied) in zip(self._members, self.classes, strict=True):
            # The share of a class depends only on which of its streams are in the set: compute each case once.
            case_of_mask = (masks & members) << self.streams | (measured & members)
            cases, index = np.unique(case_of_mask, return_inverse=True)
            within, tied = cases >> self.streams, cases & members
            shares *= _spanning(self._bits(within), self._bits(tied), given, implied)[index]
        for mask, share in self.residuals:
            shares[(masks & mask == mask) & (measured & mask != mask)] *= share
        return shares

    @cached_property
    def _members(self) -> tuple[int, ...]:
        """The mask of the streams of each attribute class."""
        return tuple(
            sum(1 << int(stream) for stream in np.flatnonzero(implied.any(axis=1))) for _, implied in self.classes
        )

    def _tie(self, class_number: int, within: int, tied: int) -> float:
        """The share of an attribute class in a set with the streams `within` of it, of which `tied` are measured."""
        if within.bit_count() < 2:
            return 1.0
        key = (class_number, within, tied)
        if key not in self._ties:
            rows = [np.array([[mask >> stream & 1 == 1 for stream in range(self.streams)]]) for mask in (within, tied)]
            self._ties[key] = float(_spanning(rows[0], rows[1], *self.classes[class_number])[0])
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
    """The larger measured set takes precedence; for sets of the same size, the larger mask."""
    return mask.bit_count(), mask


def _spanning(within: NDArray[np.bool_], tied: NDArray[np.bool_], given: Floats, implied: Floats) -> Floats:
    """For each set, the product along the best spanning tree over its streams of a class.

    The streams `tied` are joined already and contribute no factor. This is Prim's algorithm for all sets at once: in
    each round, every set that is not finished takes up one more stream.
    """
    rows = np.arange(len(within))
    of_class = within & (implied > 0).any(axis=1)
    joined = tied & of_class
    joined[rows, np.where(joined.any(axis=1), joined.argmax(axis=1), of_class.argmax(axis=1))] = True
    shares = np.ones(len(within))
    reach_given = np.where(joined[:, :, None], given, 0.0).max(axis=1)
    reach_implied = np.where(joined[:, :, None], implied, 0.0).max(axis=1)
    for _ in range(int(of_class.sum(axis=1).max(initial=0)) - 1):
        # Given selectivities come before implied ones: shares are at most 1, so adding 2 puts them first.
        reach = np.where(reach_given > 0, reach_given + 2, reach_implied)
        following = np.where(of_class & ~joined, reach, -1.0).argmax(axis=1)
        growing = (of_class & ~joined)[rows, following]
        best_given = reach_given[rows, following]
        factor = np.where(best_given > 0, best_given, reach_implied[rows, following])
        shares[growing] *= factor[growing]
        joined[growing, following[growing]] = True
        reach_given = np.maximum(reach_given, np.where(growing[:, None], given[following], 0.0))
        reach_implied = np.maximum(reach_implied, np.where(growing[:, None], implied[following], 0.0))
    return shares


def _pairs(
    query: Query, statistics: Statistics, tied: AttributeClass, known: dict[int, float]
) -> tuple[Floats, Floats]:
    """The selectivities between the streams of a class: those given, and those of all pairs with the implied ones."""
    given = np.zeros((len(query.aliases),) * 2)
    owners = [source for source in query.aliases if source in tied.sources]
    for left, right in combinations(owners, 2):
        share = _given(statistics, tied, left, right)
        mask = _mask(query, (left, right))
        if share is None and mask in known:
            # The figure of a pair counts once, even if several conditions are between its streams.
            share = known[mask]
            known[mask] = 1.0
        if share is None:
            share = _from_histograms(query, statistics, tied, left, right)
        if share is not None:
            pair = query.aliases.index(left), query.aliases.index(right)
            # 0 means that no selectivity is given, so a selectivity of exactly 0 is replaced by a tiny one.
            given[pair] = given[pair[::-1]] = max(share, np.finfo(float).tiny)
    weakest = _weakest_ties(given)
    implied = np.zeros_like(given)
    for left, right in permutations(owners, 2):
        pair = query.aliases.index(left), query.aliases.index(right)
        if np.isinf(weakest[pair]):
            raise _unknown(f"{tied.key(left)} = {tied.key(right)}")
        implied[pair] = given[pair] or weakest[pair]
    return given, implied


def _weakest_ties(pairs: Floats) -> Floats:
    """For each two streams, the largest selectivity on a path of given pairs between them, minimised over all paths."""
    worst = np.where(pairs > 0, pairs, np.inf)
    for middle in range(len(pairs)):
        worst = np.minimum(worst, np.maximum(worst[:, middle, None], worst[None, middle, :]))
    return worst


def _given(statistics: Statistics, tied: AttributeClass, left: str, right: str) -> float | None:
    """The given selectivity of an equality between two streams, in any spelling."""
    of_left = [str(expression) for owner, expression in tied.members if owner == left]
    of_right = [str(expression) for owner, expression in tied.members if owner == right]
    spellings = []
    for one, other in product(of_left, of_right):
        spellings += [f"{one} = {other}", f"{other} = {one}"]
    return statistics.share(*spellings)


def _from_histograms(query: Query, statistics: Statistics, tied: AttributeClass, left: str, right: str) -> float | None:
    """The selectivity of an equality, from the histograms of both columns; None if one of them has no histogram."""
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
    """The shares that statistics give for whole sets of streams, by mask."""
    return {
        _mask(query, subject): share
        for subject, share in statistics.selectivities.items()
        if isinstance(subject, frozenset) and subject <= frozenset(query.aliases)
    }


def _shares_left_to_pairs(query: Query, statistics: Statistics, measured: Mapping[int, float]) -> dict[int, float]:
    """For each measured pair of streams, the share that is left to the conditions without a given selectivity.

    The measured share is that of all conditions between the two streams, so the given selectivities are divided out.
    """
    remaining = {mask: share for mask, share in measured.items() if mask.bit_count() == 2}
    for mask, share in remaining.items():
        one, other = (alias for stream, alias in enumerate(query.aliases) if mask >> stream & 1)
        classes = [tied for tied in query.graph.classes if {one, other} <= tied.sources]
        residuals = [predicate for predicate in query.graph.residuals if predicate.sources == {one, other}]
        selectivities = [_given(statistics, tied, one, other) for tied in classes]
        selectivities += [statistics.share(*predicate.spellings) for predicate in residuals]
        passed = prod(selectivity for selectivity in selectivities if selectivity is not None)
        remaining[mask] = min(share / passed, 1.0) if passed else 1.0
    return remaining


def _mask(query: Query, streams: Iterable[str]) -> int:
    return sum(1 << query.aliases.index(stream) for stream in streams)


def _unknown(condition: str) -> PlanningError:
    return PlanningError(
        f"the selectivity of {condition} is not known; "
        f"give Statistics(selectivities={{'{condition}': ..}}), or the selectivity of a set of streams"
    )
