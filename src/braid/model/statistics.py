"""Statistics of the streams of a query, measured or assumed. An unknown figure is None, never zero."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Complex, Integral, Real
from types import MappingProxyType
from typing import TypeVar

from braid.errors import ModelError
from braid.model.checks import check, check_name, is_figure, shown
from braid.model.duration import UNITS
from braid.model.predicate import Predicate
from braid.model.query import Source
from braid.model.window import FOREVER

Subject = str | frozenset[str]
"""What a selectivity describes: a predicate, by its text, or the join of a set of streams."""

Prefix = tuple[str, frozenset[str]]
"""What a fan-out describes: a head, and the streams that its rows are joined with first, itself included."""

Sized = str | frozenset[str] | Prefix
"""What a size describes: a stream, the join of a set of streams, or what a head makes on its way through them."""

SUBJECTS: dict[str, type | tuple[type, ...]] = {"fanouts": tuple, "sizes": (str, frozenset, tuple)}
"""The kinds of keys of the fields that have others than texts and sets of streams."""


LARGEST = 10**38
"""Every integer in a column is smaller than this."""


@dataclass(frozen=True, order=True)
class Others:
    """A key of a histogram: all keys that no histogram of the join lists. `count` is about how many they are."""

    count: int


@dataclass(frozen=True)
class Statistics:
    """Figures by the alias of a stream in the query, or by the name of a stream, which applies to all its aliases.

    - `rates`: rows per second;
    - `sizes`: bytes per row as it travels, of a stream or of the join of a set of streams; also for a head and a set,
      as for `fanouts`, because rows of a probe sequence carry less;
    - `populations`: rows in the window;
    - `selectivities`: the share of combinations that pass a predicate or a join;
    - `fanouts`: for a head and a set of streams, by alias, how many combinations of them a new row of the head makes;
    - `lengths`: seconds that a row stays in its window, for windows that do not say it themselves;
    - `sites`: the site where each stream starts;
    - `histograms`: for a column (`alias.column` or `stream.column`), the rows per second of each of its values, of
      each range of integers (first, last), or of all `Others`;
    - `batches`: batches per second of a stream on its channel. Each has a header, so that many small ones cost more;
    - `loads`: for a site, how many seconds of work a second of event time takes. Cost models charge work alike at every
      site, so that none of them uses it.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[Sized, float] = field(default_factory=dict)
    populations: Mapping[str, float] = field(default_factory=dict)
    selectivities: Mapping[Subject, float] = field(default_factory=dict)
    fanouts: Mapping[Prefix, float] = field(default_factory=dict)
    lengths: Mapping[str, float] = field(default_factory=dict)
    sites: Mapping[str, str] = field(default_factory=dict)
    histograms: Mapping[str, Mapping[Hashable, float]] = field(default_factory=dict)
    batches: Mapping[str, float] = field(default_factory=dict)
    loads: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("rates", "sizes", "populations", "selectivities", "fanouts", "lengths", "batches", "loads"):
            self._freeze_figures(name)
        self._freeze_sites()
        self._freeze_histograms()
        for subject, share in self.selectivities.items():
            if share > 1:
                raise ModelError(f"the selectivity of {subject} is a share of combinations, not {share}; give 0 to 1")

    def _freeze_figures(self, name: str) -> None:
        """Check the figures of one field, drop those that are None, and make the field read-only."""
        check(getattr(self, name), Mapping, f"the {name} of statistics")
        figures = {subject: figure for subject, figure in getattr(self, name).items() if figure is not None}
        for subject, figure in figures.items():
            check(subject, SUBJECTS.get(name, (str, frozenset)), f"a key of the {name}")
            if not is_figure(figure):
                raise ModelError(f"{name} of {subject} cannot be {shown(figure, str)}; leave out unknown figures")
        # Costs are floats, and arithmetic of a float with an int that is too large for one raises an error.
        as_floats = {subject: float(figure) for subject, figure in figures.items()}
        object.__setattr__(self, name, MappingProxyType(as_floats))

    def _freeze_sites(self) -> None:
        check(self.sites, Mapping, "the sites of statistics")
        for stream, site in self.sites.items():
            check_name(stream, "the stream of a site")
            check_name(site, f"the site of '{stream}'")
        object.__setattr__(self, "sites", MappingProxyType(dict(self.sites)))

    def _freeze_histograms(self) -> None:
        check(self.histograms, Mapping, "the histograms of statistics")
        for column, rates in self.histograms.items():
            check_name(column, "the column of a histogram")
            check(rates, Mapping, f"the histogram of {column}")
        histograms = {column: MappingProxyType(dict(rates)) for column, rates in self.histograms.items()}
        object.__setattr__(self, "histograms", MappingProxyType(histograms))
        for column, rates in self.histograms.items():
            for value, rate in rates.items():
                _check_value(column, value)
                if not is_figure(rate):
                    raise ModelError(
                        f"the rate of {column} = {value} cannot be {shown(rate, str)}; leave out unknown figures"
                    )
            if not is_figure(sum(rates.values())):
                raise ModelError(f"the sum of the rates of all values of {column} is too large; check them")

    def rate(self, source: Source) -> float | None:
        return _of(self.rates, source)

    def size(self, source: Source) -> float | None:
        """Bytes per row of a stream, as it leaves its site."""
        by_alias = self.sizes.get(source.alias)
        return self.sizes.get(source.stream) if by_alias is None else by_alias

    def site(self, source: Source) -> str | None:
        """The site where the stream starts."""
        return _of(self.sites, source)

    def population(self, source: Source) -> float | None:
        """How many rows the window holds: as measured, else as the rate and the length of the window imply."""
        measured = _of(self.populations, source)
        if measured is not None:
            return measured
        if source.window.row_limit is not None and not source.window.partition_by:
            return float(source.window.row_limit)
        rate = self.rate(source)
        length = self.length(source)
        return None if rate is None or length is None else rate * length

    def length(self, source: Source) -> float | None:
        """How many seconds a row stays in its window: as the window says, else from `lengths`."""
        lifetime = source.window.lifetime
        if lifetime is not None and lifetime < FOREVER:
            return lifetime / UNITS["second"]
        return _of(self.lengths, source)

    def histogram(self, source: Source, column: str) -> Mapping[Hashable, float] | None:
        """The rows per second of each value of a column."""
        for name in (source.alias, source.stream):
            if f"{name}.{column}" in self.histograms:
                return self.histograms[f"{name}.{column}"]
        return None

    @cached_property
    def _by_text(self) -> dict[str, float]:
        return {_unspaced(subject): share for subject, share in self.selectivities.items() if isinstance(subject, str)}

    def share(self, *spellings: str) -> float | None:
        """The selectivity of a predicate under any of its spellings; white space makes no difference.

        >>> Statistics(selectivities={"a.k=b.k": 0.5}).share("b.k = a.k", "a.k = b.k")
        0.5
        """
        for spelling in spellings:
            share = self._by_text.get(_unspaced(spelling))
            if share is not None:
                return share
        return None

    def selectivity(self, predicates: Iterable[Predicate], streams: Iterable[str]) -> float | None:
        """The share of combinations that passes all predicates.

        The selectivity of the set of streams if it is known, else the product of those of the predicates; None if one
        of these is unknown.

        >>> Statistics(selectivities={frozenset("ab"): 0.5}).selectivity([], ["a", "b"])
        0.5
        """
        known = self.selectivities.get(frozenset(streams))
        if known is not None:
            return known
        product = 1.0
        for predicate in predicates:
            share = self.share(*predicate.spellings)
            if share is None:
                return None
            product *= share
        return product


def _check_value(column: str, value: Hashable) -> None:
    """Check a key of a histogram: a single value, or a range of integers."""
    ends = value if isinstance(value, tuple) else (value,)
    if any(isinstance(end, Integral | Fraction) and abs(int(end)) >= LARGEST for end in ends):
        raise ModelError(f"the histogram of {column} has a whole number of more than 38 digits; no column holds it")
    if isinstance(value, tuple):
        if len(ends) != 2 or not all(isinstance(end, Integral) for end in ends):
            raise ModelError(
                f"the histogram of {column} has {value}, which is not a range of whole numbers (first, last)"
            )
        if value[0] > value[1]:
            raise ModelError(f"the range {value} in the histogram of {column} ends before it begins; swap its ends")
    if isinstance(value, Complex) and not isinstance(value, Real):
        raise ModelError(f"the histogram of {column} has {value}; no column holds complex numbers")


def _unspaced(text: str) -> str:
    return "".join(text.split())


Figure = TypeVar("Figure")


def _of(figures: Mapping[str, Figure], source: Source) -> Figure | None:
    by_alias = figures.get(source.alias)
    return figures.get(source.stream) if by_alias is None else by_alias
