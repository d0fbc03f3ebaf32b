"""Where something runs in a simulation."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """What a site does for one generation of the plans of a query. As on Spark, it runs each on its own.

    Generation 0 has the intakes, where the streams of the query enter it.
    """

    query: str
    generation: int
    site: str

    def __str__(self) -> str:
        return f"{self.query} #{self.generation} at {self.site}"
