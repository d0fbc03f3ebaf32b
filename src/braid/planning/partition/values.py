"""Figures from rates by value of the join attribute, for the whole key space or a part of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.planning.cost.batch_headers import Headers
from braid.planning.cost.figures import BySet, FigureTable, check_table_size
from braid.planning.cost.row_sizes import RowSizes
from braid.planning.order.subsets import members

Floats = NDArray[np.float64]

VALUES_AT_A_TIME = 256
"""The values that are handled together: few enough that tables over all sets of streams stay small."""


@dataclass(frozen=True, eq=False)
class Whole:
    """What was measured of the joins of all values, indexed by mask.

    `rates` are rows per second, `scales` how many times those that follow from the histograms. With `headers`, sizes
    include those of batches.
    """

    rates: Floats
    scales: Floats
    headers: Headers | None = None


@dataclass(frozen=True, eq=False)
class ByValue(BySet):
    """Figures of streams that are joined on one attribute, from the rate of each value. Only equal values match.

    `rates` has a row for each stream and a column for each value, or for several values with the same rates. `counts`
    has the number of values in each column. `lengths` has the lengths of the windows in seconds. If something was
    measured of the `whole`, parts add up to it.
    """

    streams: tuple[str, ...]
    rates: Floats
    counts: Floats
    lengths: Floats
    sizes: RowSizes | None = None
    whole: Whole | None = None

    def part(self, chosen: NDArray[np.bool_]) -> ByValue:
        """The figures for some of the values only."""
        return replace(self, rates=self.rates[:, chosen], counts=self.counts[chosen])

    def measured(self, rates: Floats, headers: Headers | None) -> ByValue:
        """Figures that add up to measured rates of the joins of all values, indexed by mask.

        Measured rates are better than those that follow from histograms, but only these tell parts apart.
        """
        expected = self.table.rates
        scales = np.divide(rates, expected, out=np.ones_like(rates), where=expected > 0)
        return replace(self, whole=Whole(rates, scales, headers))

    @property
    def has_headers(self) -> bool:
        """Whether sizes include the headers of batches."""
        return self.sizes is not None and self.whole is not None and self.whole.headers is not None

    def size(self, mask: int, head: int | None = None) -> float:
        size, whole = super().size(mask, head), self.whole
        if not self.has_headers or whole is None or whole.headers is None:
            return size
        # A part has as many batches as all values have, and fewer rows in each of them.
        headers, all_rows = whole.headers, float(whole.rates[mask])
        return max(1.0, size + headers.per_row(mask, self.rate(mask)) - headers.per_row(mask, all_rows))

    def _size_table(self) -> Floats:
        if not self.has_headers:
            return super()._size_table()
        return np.array([self.size(mask) if mask else 0.0 for mask in range(1 << len(self.streams))])

    def _scale(self, mask: int) -> float:
        return 1.0 if self.whole is None else float(self.whole.scales[mask])

    @cached_property
    def populations(self) -> Floats:
        return self.rates * self.lengths[:, None]

    def flow(self, head: int, mask: int) -> float:
        flow = self.rates[head].copy()
        for stream in members(mask & ~(1 << head)):
            flow *= self.populations[stream]
        return float((flow * self.counts).sum()) * self._scale(mask)

    @cached_property
    def _known(self) -> dict[int, tuple[float, float]]:
        return {}

    def _joined(self, mask: int) -> tuple[float, float]:
        if mask not in self._known:
            rates, populations = np.zeros(self.rates.shape[1]), np.ones(self.rates.shape[1])
            for stream in members(mask):
                rates = rates * self.populations[stream] + populations * self.rates[stream]
                populations = populations * self.populations[stream]
            scaled = self.counts * self._scale(mask)
            self._known[mask] = float((rates * scaled).sum()), float((populations * scaled).sum())
        return self._known[mask]

    @cached_property
    def table(self) -> FigureTable:
        check_table_size(self.streams)
        rates, populations = np.zeros(1 << len(self.streams)), np.zeros(1 << len(self.streams))
        for start in range(0, self.rates.shape[1], VALUES_AT_A_TIME):
            columns = slice(start, start + VALUES_AT_A_TIME)
            block_rates, block_populations = self._all_sets(columns)
            rates += block_rates
            populations += block_populations
        if self.whole is not None:
            rates, populations = rates * self.whole.scales, populations * self.whole.scales
        return FigureTable(rates, populations, self._size_table())

    def _all_sets(self, columns: slice) -> tuple[Floats, Floats]:
        """Rates and populations of all sets of streams, summed over some values."""
        counts = self.counts[columns]
        rates, populations = np.zeros((1, len(counts))), np.ones((1, len(counts)))
        for rate, population in zip(self.rates[:, columns], self.populations[:, columns], strict=True):
            rates = np.concatenate([rates, rates * population + populations * rate])
            populations = np.concatenate([populations, populations * population])
        return (rates * counts).sum(axis=1), (populations * counts).sum(axis=1)
