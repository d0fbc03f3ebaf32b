"""What is known of the streams: unknown is None, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from braid.model.predicate import Predicate
from braid.model.query import Source
from braid.model.window import UNITS, Now, Range, Rows

Subject = str | frozenset[str]
"""What a selectivity is of: a predicate, by its text, or any join of a set of streams."""


@dataclass(frozen=True)
class Statistics:
    """Measured or assumed figures, by the alias a stream has in the query.

    `rates` are in tuples per second, `sizes` in bytes per tuple, `populations` in tuples in the window, and a
    selectivity is the share of combinations that pass.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)
    populations: Mapping[str, float] = field(default_factory=dict)
    selectivities: Mapping[Subject, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("rates", "sizes", "populations", "selectivities"):
            figures = dict(getattr(self, name))
            for subject, figure in figures.items():
                if not figure >= 0:
                    raise ValueError(f"{name} of {subject} cannot be {figure}; leave out what is unknown")
            object.__setattr__(self, name, figures)
        for subject, share in self.selectivities.items():
            if share > 1:
                raise ValueError(f"the selectivity of {subject} is a share of combinations, not {share}; give 0 to 1")

    def rate(self, source: Source) -> float | None:
        return self.rates.get(source.alias)

    def population(self, source: Source) -> float | None:
        """How many tuples its window holds: as measured, else as its rate and its length imply."""
        measured = self.populations.get(source.alias)
        if measured is not None:
            return measured
        if isinstance(source.window, Rows) and not source.window.partition_by:
            return float(source.window.count)
        rate = self.rate(source)
        if rate is None or not isinstance(source.window, Range | Now):
            return None
        length = source.window.length if isinstance(source.window, Range) else 1
        return rate * length / UNITS["second"]

    def selectivity(self, predicates: Iterable[Predicate], streams: Iterable[str]) -> float | None:
        """The share that passes all of these predicates; None unless each is known, or the set of streams is.

        >>> Statistics(selectivities={frozenset("ab"): 0.5}).selectivity([], ["a", "b"])
        0.5
        """
        known = self.selectivities.get(frozenset(streams))
        if known is not None:
            return known
        product = 1.0
        for predicate in predicates:
            share = self.selectivities.get(str(predicate))
            if share is None:
                return None
            product *= share
        return product
