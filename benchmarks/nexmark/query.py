"""A query of the benchmark, written for Braid, for DuckDB and for Spark's own streaming."""

from __future__ import annotations

import re
from dataclasses import dataclass

STREAMS = ("person", "auction", "bid")


@dataclass(frozen=True)
class Query:
    """A query by its name in Nexmark, as its user would write it for each system."""

    name: str
    asks: str
    text: str
    """For Braid."""
    expected: str
    """For DuckDB, over the whole input."""
    spark: str
    """For Spark: SQL over streams with watermarks. Where Spark refuses it, the nearest text that says the same."""
    rewritten: str = "-"
    """What differs from the public text for Flink, and why."""
    waits: bool = False
    """Whether results wait for the end of a window. Then the rows at the end of the input only close windows."""
    on_spark_only: bool = False
    """Whether the query needs what only Spark has: its functions, groups in FROM."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads: those with a window, or in a window function."""
        read = set(re.findall(r"(\w+)(?: \[|, DESCRIPTOR)", self.text))
        return tuple(stream for stream in STREAMS if stream in read)


@dataclass(frozen=True)
class Impossible:
    """A query that Braid refuses. `text` is what its user would write."""

    name: str
    asks: str
    text: str
    reason: str
