"""A query, and streams whose best join order changes half-way, for tests of adaptation on any host."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

FLIP = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS], c [RANGE 4 SECONDS]
          WHERE a.k = b.k AND b.k = c.k"""


def flipping(seconds: int = 40, rate: int = 50) -> dict[str, pa.Table]:
    """Streams for `FLIP`: in the first half few rows of b match a row of a and many of c, then the other way round."""
    generator = np.random.default_rng(5)
    tables = {}
    for name in "abc":
        times = np.sort(generator.integers(0, seconds * 1_000_000, seconds * rate))
        early = times < seconds * 500_000
        keys = generator.integers(0, 40, len(times))
        # Only even keys match: a has no odd keys.
        if name == "a":
            keys *= 2
        else:
            rare = early == (name == "b")
            keys = np.where(rare, 2 * keys + (generator.random(len(times)) < 0.95), 2 * (keys % 8))
        stamps = pa.array(times, pa.timestamp("us", "UTC"))
        tables[name] = pa.table({"ts": stamps, "k": keys, "n": np.arange(len(times))})
    return tables
