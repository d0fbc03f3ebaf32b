"""The figures that a site measures of its part of a query, and reports to other sites."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from braid.adapt.controller import differ
from braid.adapt.observation import KeyColumn
from braid.adapt.sketch import KeySketch
from braid.errors import ModelError
from braid.model.statistics import Sized
from braid.model.window import FOREVER

INTAKES = 0
"""Figures of intakes have this number instead of that of a generation: intakes belong to no generation."""

CHANCE = 3.0
"""A figure that differs by fewer standard errors than this may have moved by chance."""


@dataclass(frozen=True)
class SiteFigures:
    """The figures of what a site makes for one generation of a query, or of the streams that start at the site.

    `rates` are rows per second of event time, `sizes` bytes per row on the channel. Both are of a stream, of the join
    of a set of streams, or of what a head makes on its way through a probe sequence. Of the streams that start at the
    site, `keys` has sketches of their join keys, `batches` their batches per second, and `rows` how many rows they had
    brought meanwhile: no window had more. All figures are about the last `seconds` of event time. `reached` is the
    event time that the site has come to: later figures replace earlier ones. `load` is how many seconds of work a
    second of event time takes, on all cores of the site together; None if the host does not measure it.
    """

    site: str
    generation: int
    rates: Mapping[Sized, float] = field(default_factory=dict)
    sizes: Mapping[Sized, float] = field(default_factory=dict)
    keys: Mapping[KeyColumn, KeySketch] = field(default_factory=dict)
    batches: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)
    seconds: float = FOREVER / 1e6
    reached: int = -FOREVER
    load: float | None = None

    @property
    def source(self) -> tuple[int, str]:
        """What the figures are about: a generation, at a site."""
        return self.generation, self.site

    def differs(self, other: SiteFigures, drift: float) -> bool:
        """Whether a figure differs from that of `other` by more than the share `drift`, and by more than chance."""
        return (
            any(self._has_moved(other, of, drift) for of in self.rates.keys() | other.rates.keys())
            or any(self._is_wider(other, of, drift) for of in self.sizes.keys() & other.sizes.keys())
            or differ(self._distinct, other._distinct, drift)
        )

    def _has_moved(self, other: SiteFigures, of: Sized, drift: float) -> bool:
        now, before = self.rates.get(of, 0.0), other.rates.get(of, 0.0)
        return abs(now - before) > max(drift * max(now, before), CHANCE * self._error(other, of))

    def _is_wider(self, other: SiteFigures, of: Sized, drift: float) -> bool:
        now, before = self.sizes[of], other.sizes[of]
        rate = max(self.rates.get(of, 0.0), other.rates.get(of, 0.0))
        by_chance = CHANCE * self._error(other, of) / rate if rate else 1.0
        return abs(now - before) > max(drift, by_chance) * max(now, before)

    def _error(self, other: SiteFigures, of: Sized) -> float:
        """The standard error of the difference of two rates: of so many rows that come at random."""
        return sqrt(sum(figures.rates.get(of, 0.0) / figures.seconds for figures in (self, other) if figures.seconds))

    @property
    def _distinct(self) -> dict[KeyColumn, float]:
        """The number of distinct keys of each stream."""
        return {key: sketch.distinct or 0.0 for key, sketch in self.keys.items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "site": self.site,
            "generation": self.generation,
            "rates": [[*_subject_to_json(of), rate] for of, rate in self.rates.items()],
            "sizes": [[*_subject_to_json(of), size] for of, size in self.sizes.items()],
            "keys": [[*key, base64.b64encode(sketch.to_bytes()).decode("ascii")] for key, sketch in self.keys.items()],
            "batches": dict(self.batches),
            "rows": dict(self.rows),
            "seconds": self.seconds,
            "reached": self.reached,
            "load": self.load,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SiteFigures:
        """The figures that `to_json` wrote; `ModelError` for anything else."""
        try:
            return cls(
                content["site"],
                content["generation"],
                {_subject_from_json(head, streams): float(rate) for head, streams, rate in content["rates"]},
                {_subject_from_json(head, streams): float(size) for head, streams, size in content["sizes"]},
                {
                    (alias, class_number): KeySketch.from_bytes(base64.b64decode(data, validate=True))
                    for alias, class_number, data in content["keys"]
                },
                {alias: float(batches) for alias, batches in content["batches"].items()},
                {alias: float(rows) for alias, rows in content["rows"].items()},
                float(content["seconds"]),
                content["reached"],
                None if content.get("load") is None else float(content["load"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ModelError(f"these are not the figures of a site: {problem!r} in {content!r:.200}") from problem


def _subject_to_json(of: Sized) -> tuple[str | None, list[str]]:
    """What a figure is about, for JSON: its head, or None for a join, and its streams."""
    if isinstance(of, str):
        return of, [of]
    if isinstance(of, frozenset):
        return None, sorted(of)
    head, streams = of
    return head, sorted(streams)


def _subject_from_json(head: str | None, streams: list[str]) -> Sized:
    if head is None:
        return frozenset(streams)
    return head if streams == [head] else (head, frozenset(streams))
