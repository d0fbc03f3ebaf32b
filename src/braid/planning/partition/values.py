"""Figures from rates by value of the join attribute, for the whole key space or a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.planning.cost.figures import BySet, Table, check_table_size
from braid.planning.cost.row_sizes import RowSizes
from braid.planning.order.subsets import members

Floats = NDArray[np.float64]

VALUES_AT_A_TIME = 256
"""The values that are handled together: few enough that tables over all sets of streams stay small."""


@dataclass(frozen=True, eq=False)
class ByValue(BySet):
    """Figures of streams that are joined on one attribute, from the rate of each value. Only equal values match.

    `rates` has a row for each stream and a column for each value, or for several values with the same rates. `counts`
    has the number of values in each column. `lengths` has the lengths of the windows in seconds.
    """

    streams: tuple[str, ...]
    rates: Floats
    counts: Floats
    lengths: Floats
    sizes: RowSizes | None = None

    def part(self, chosen: NDArray[np.bool_]) -> ByValue:
        """The figures for some of the values only."""
        return ByValue(self.streams, self.rates[:, chosen], self.counts[chosen], self.lengths, self.sizes)

    @cached_property
    def populations(self) -> Floats:
        return self.rates * self.lengths[:, None]

    def flow(self, head: int, mask: int) -> float:
        flow = self.rates[head].copy()
        for stream in members(mask & ~(1 << head)):
            flow *= self.populations[stream]
        return float((flow * self.counts).sum())

    @cached_property
    def _known(self) -> dict[int, tuple[float, float]]:
        return {}

    def _joined(self, mask: int) -> tuple[float, float]:
        if mask not in self._known:
            rates, populations = np.zeros(self.rates.shape[1]), np.ones(self.rates.shape[1])
            for stream in members(mask):
                rates = rates * self.populations[stream] + populations * self.rates[stream]
                populations = populations * self.populations[stream]
            self._known[mask] = float((rates * self.counts).sum()), float((populations * self.counts).sum())
        return self._known[mask]

    @cached_property
    def table(self) -> Table:
        check_table_size(self.streams)
        rates, populations = np.zeros(1 << len(self.streams)), np.zeros(1 << len(self.streams))
        for start in range(0, self.rates.shape[1], VALUES_AT_A_TIME):
            columns = slice(start, start + VALUES_AT_A_TIME)
            block_rates, block_populations = self._all_sets(columns)
            rates += block_rates
            populations += block_populations
        return Table(rates, populations, self._size_table())

    def _all_sets(self, columns: slice) -> tuple[Floats, Floats]:
        """Rates and populations of all sets of streams, summed over some values."""
        counts = self.counts[columns]
        rates, populations = np.zeros((1, len(counts))), np.ones((1, len(counts)))
        for rate, population in zip(self.rates[:, columns], self.populations[:, columns], strict=True):
            rates = np.concatenate([rates, rates * population + populations * rate])
            populations = np.concatenate([populations, populations * population])
        return (rates * counts).sum(axis=1), (populations * counts).sum(axis=1)
