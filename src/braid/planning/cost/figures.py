"""The expected figures of the join of each set of streams: its rate, its population and the size of its rows.

New rows of stream i are joined with the windows of the others. So the join of a set S yields, in any order of joins,
`share(S) * sum over i of rate(i) * product over the others of population` rows per second, and its window holds
`share(S) * product of populations` rows.

Where the fan-outs of a head are measured, they take the place of these products: how many combinations of a set a new
row makes says more than the mean of each condition, if keys are skewed or conditions depend on each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.row_sizes import RowSizes
from braid.planning.cost.shares import Shares
from braid.planning.order.subsets import members

Floats = NDArray[np.float64]

LARGEST_TABLE = 16
"""The most streams for which a table over all sets of streams is made."""


class Figures(Protocol):
    """Expected figures of each set of streams, given as a bit mask. Planners use no other statistics."""

    @property
    def streams(self) -> tuple[str, ...]: ...

    @property
    def sizes(self) -> RowSizes | None:
        """The sizes of rows in bytes; None if they are not known, and every row counts as 1."""
        ...

    def rate(self, mask: int) -> float:
        """Rows per second."""
        ...

    def population(self, mask: int) -> float:
        """Rows in the window."""
        ...

    def size(self, mask: int, head: int | None = None) -> float:
        """Bytes per row as it travels: of a tree, or as a head makes it in its probe sequence."""
        ...

    def flow(self, head: int, mask: int) -> float:
        """Rows per second of the join of a set that are triggered by new rows of one of its streams."""
        ...

    @property
    def table(self) -> FigureTable:
        """The figures of all sets at once, for at most `LARGEST_TABLE` streams."""
        ...


class FigureTable(NamedTuple):
    """Figures of all sets of streams, indexed by mask; the entry of the empty set has no meaning."""

    rates: Floats
    populations: Floats
    sizes: Floats


class BySet(ABC):
    """The common part of all figures: subclasses compute the rate and the population of a set."""

    streams: tuple[str, ...]
    sizes: RowSizes | None

    @abstractmethod
    def _joined(self, mask: int) -> tuple[float, float]:
        """Rate and population of a set of streams."""

    def rate(self, mask: int) -> float:
        return self._joined(mask)[0]

    def population(self, mask: int) -> float:
        return self._joined(mask)[1]

    def size(self, mask: int, head: int | None = None) -> float:
        return 1.0 if self.sizes is None else self.sizes.size(mask, head)

    def _size_table(self) -> Floats:
        """The sizes of all sets, indexed by mask."""
        count = len(self.streams)
        if self.sizes is None:
            return np.ones(1 << count)
        sizes = np.zeros(1)
        for size in self.sizes.streams:
            sizes = np.concatenate([sizes, sizes + size])
        for mask, size in self.sizes.joins.items():
            sizes[mask] = size
        return sizes


@dataclass(frozen=True)
class Expected(BySet):
    """Figures computed from those of each stream and the share of combinations that match."""

    streams: tuple[str, ...]
    rates: tuple[float, ...]
    populations: tuple[float, ...]
    sizes: RowSizes | None
    shares: Shares
    fanouts: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """The fan-outs that were measured, by head and mask."""

    @classmethod
    def of(cls, query: Query, statistics: Statistics) -> Expected:
        """The figures of a query. Raises a `PlanningError` for the first figure that is needed and not known."""
        rates, populations = [], []
        for source in query.sources:
            share, alias = 1.0, source.alias
            for predicate in query.graph.selections_of(alias):
                known = statistics.share(*predicate.spellings)
                # A filter of unknown selectivity is assumed to pass every row, the upper bound.
                share *= 1.0 if known is None else known
            rate, population = statistics.rate(source), statistics.population(source)
            if rate is None:
                raise PlanningError(
                    f"the rate of stream '{alias}' is not known; give Statistics(rates={{'{alias}': ..}})"
                )
            if population is None and len(query.sources) > 1:
                raise PlanningError(
                    f"how many rows the window {source.window} of '{alias}' holds is not known; "
                    f"give Statistics(populations={{'{alias}': ..}}) or lengths in seconds"
                )
            measured = {alias, source.stream} & set(statistics.populations)
            rates.append(rate * share)
            populations.append((population or 0.0) * (1.0 if measured else share))
        shares = Shares.of(query, statistics)
        fanouts = {
            (query.aliases.index(head), sum(1 << query.aliases.index(alias) for alias in bound)): fanout
            for (head, bound), fanout in statistics.fanouts.items()
        }
        return cls(query.aliases, tuple(rates), tuple(populations), RowSizes.of(query, statistics), shares, fanouts)

    def flow(self, head: int, mask: int) -> float:
        return self.rates[head] * self._fanout(head, mask)

    def _fanout(self, head: int, mask: int) -> float:
        """The combinations of a set that a new row makes: as measured, else the least that a measured part implies."""
        measured_masks, fanouts = self._measured[head], self._fanouts[head]
        if mask not in fanouts:
            measured = [subset for subset in measured_masks if subset & ~mask == 0]
            largest = max(subset.bit_count() for subset in measured)
            fanouts[mask] = min(
                fanouts[subset] * self._growth(subset, mask) for subset in measured if subset.bit_count() == largest
            )
        return fanouts[mask]

    def _growth(self, subset: int, mask: int) -> float:
        """By which factor the combinations of a set become more in a larger set, if all conditions are independent."""
        share = self.shares.share(subset)
        # More conditions never let more through. Measured shares may say so: each was measured at another time.
        growth = min(1.0, self.shares.share(mask) / share) if share else 0.0
        for stream in members(mask & ~subset):
            growth *= self.populations[stream]
        return growth

    @cached_property
    def _fanouts(self) -> list[dict[int, float]]:
        """The fan-outs of each head by mask, as far as they are known; that of the head alone is 1."""
        fanouts = [{1 << head: 1.0} for head in range(len(self.streams))]
        for (head, mask), fanout in self.fanouts.items():
            fanouts[head][mask] = fanout
        return fanouts

    @cached_property
    def _measured(self) -> list[tuple[int, ...]]:
        """The masks of each head whose fan-outs were measured."""
        return [tuple(fanouts) for fanouts in self._fanouts]

    def _joined(self, mask: int) -> tuple[float, float]:
        rate, population = self._independent(mask)
        if not self.fanouts or not rate or mask.bit_count() == 1:
            return rate, population
        measured = sum(self.flow(head, mask) for head in members(mask))
        return measured, population * measured / rate

    def _independent(self, mask: int) -> tuple[float, float]:
        """Rate and population of a set, if all conditions are independent."""
        if not self.fanouts and "table" in self.__dict__:
            return float(self.table.rates[mask]), float(self.table.populations[mask])
        rate, population = 0.0, 1.0
        for stream in members(mask):
            rate = rate * self.populations[stream] + population * self.rates[stream]
            population *= self.populations[stream]
        share = self.shares.share(mask)
        return rate * share, population * share

    @cached_property
    def table(self) -> FigureTable:
        check_table_size(self.streams)
        rates, populations = np.zeros(1), np.ones(1)
        for stream in range(len(self.streams)):
            rates = np.concatenate([rates, rates * self.populations[stream] + populations * self.rates[stream]])
            populations = np.concatenate([populations, populations * self.populations[stream]])
        if self.fanouts:
            joined = np.array([self._joined(mask) for mask in range(len(rates))])
            return FigureTable(joined[:, 0], joined[:, 1], self._size_table())
        shares = self.shares.table
        return FigureTable(rates * shares, populations * shares, self._size_table())


def check_table_size(streams: Sequence[str]) -> None:
    if len(streams) > LARGEST_TABLE:
        raise PlanningError(
            f"a table of all sets of {len(streams)} streams is too large; "
            f"the limit is {LARGEST_TABLE}: choose a planner that uses only some of the sets, such as 'stream_join_opt'"
        )
