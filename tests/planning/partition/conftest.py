"""Example 1 of the PMJoin paper."""

import braid
from braid.model.statistics import Statistics

TABLE_1 = {
    "S1": {"a": 0.1, "b": 0.1, "c": 100.0},
    "S2": {"a": 0.03, "b": 50.0, "c": 0.04},
    "S3": {"a": 50.0, "b": 0.01, "c": 0.02},
}
"""Table 1 of the paper: rows per second by destination."""

EXAMPLE_1 = braid.parse(
    """SELECT * FROM S1 [RANGE 500 MILLISECONDS], S2 [RANGE 500 MILLISECONDS], S3 [RANGE 500 MILLISECONDS]
    WHERE S1.dest = S2.dest AND S2.dest = S3.dest"""
)
KNOWN = Statistics(
    rates={stream: sum(rates.values()) for stream, rates in TABLE_1.items()},
    sizes=dict.fromkeys(TABLE_1, 1.0),
    sites={"S1": "n0", "S2": "n1", "S3": "n2"},
    histograms={f"{stream}.dest": rates for stream, rates in TABLE_1.items()},
)
