"""The sizes of rows as they travel: of streams, and of what joins make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from braid.errors import PlanningError
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.order.subsets import members


@dataclass(frozen=True)
class RowSizes:
    """Bytes per row of each set of streams, given as a bit mask.

    `streams` has those of the streams themselves. A joined row is as large as was measured, in `joins` for the rows of
    a tree and in `prefixes` for those that a head makes in a probe sequence, else as large as its parts together.
    """

    streams: tuple[float, ...]
    joins: Mapping[int, float] = field(default_factory=dict)
    prefixes: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query, statistics: Statistics) -> RowSizes | None:
        """The sizes of the rows of a query; None if nothing is known of any."""
        if not statistics.sizes:
            return None
        streams = []
        for source in query.sources:
            size = statistics.size(source)
            if size is None:
                raise PlanningError(
                    f"the row size of stream '{source.alias}' is not known; "
                    f"give Statistics(sizes={{'{source.alias}': ..}})"
                )
            streams.append(size)
        aliases = frozenset(query.aliases)
        joins, prefixes = dict[int, float](), dict[tuple[int, int], float]()
        for subject, size in statistics.sizes.items():
            if isinstance(subject, frozenset) and subject <= aliases:
                joins[_mask(query, subject)] = size
            elif isinstance(subject, tuple) and subject[1] <= aliases:
                prefixes[query.aliases.index(subject[0]), _mask(query, subject[1])] = size
        return cls(tuple(streams), joins, prefixes)

    def size(self, mask: int, head: int | None = None) -> float:
        if mask.bit_count() == 1:
            return self.streams[mask.bit_length() - 1]
        known = self.prefixes.get((head, mask)) if head is not None else None
        known = self.joins.get(mask) if known is None else known
        return sum(self.streams[stream] for stream in members(mask)) if known is None else known

    def grouped(self, groups: Sequence[int]) -> RowSizes:
        """The sizes for streams that are joins of these: each given by its mask here."""
        joins = {}
        for mask, size in self.joins.items():
            within = [position for position, group in enumerate(groups) if group & ~mask == 0]
            if sum(groups[position] for position in within) == mask:
                joins[sum(1 << position for position in within)] = size
        return RowSizes(tuple(map(self.size, groups)), joins)


def _mask(query: Query, streams: frozenset[str]) -> int:
    return sum(1 << query.aliases.index(stream) for stream in streams)
