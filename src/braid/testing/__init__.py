"""Helpers for tests of Braid and of programs built on it.

Begin with `oracle`, which computes by DuckDB what a query must give, and `comparison`, which compares tables as
multisets of rows. The oracle stands on `relation` (streams for DuckDB), `lifetimes` (windows in SQL), `fixed_joins`
(outer, semi and anti joins), `grouping` (GROUP BY) and `spark_meaning` (Spark's expressions in DuckDB); `comparison`
stands on `encoding`.

`generators` makes random cases; a `case` is a query with its input. It uses `choices` (random decisions), `values`,
`streams` and `conditions`. `changes` makes random plan changes, also with `parts` of the keys, and `network_cases` puts
a case on a random network. `cluster` runs a case in shards with failures. `interpreter` runs the site programs of a
deployment by their definition, `three_streams` has rows for it, and `similar_queries` queries over them that can share
joins. `networks` has problems for planners, `worlds` streams with known rates for monitors and controllers, and
`flipping` streams whose best join order changes half-way. `channel_batches` has small batches for tests of channels.
`stream_files`, `processes` and `nats_server` are helpers for tests that start programs. `kafka_cluster` is the cluster
that Kafka's client simulates, and `kafka_broker`, with `kafka_wire`, a broker that can do what that one cannot.
"""

from braid.testing.case import Case, without_late_rows
from braid.testing.comparison import assert_same_rows, compare_rows
from braid.testing.generators import cases, random_case
from braid.testing.oracle import oracle

__all__ = ["Case", "assert_same_rows", "cases", "compare_rows", "oracle", "random_case", "without_late_rows"]
