"""Nexmark on Spark: the queries of the public benchmark, and joins of many streams whose rates change.

`generator` makes the input. `rows`, `joins`, `groups` and `ranks` have the queries, `multiway` the joins of many
streams. `running` runs them beside Spark's own streaming, `page` writes the results.

Run by `python -m benchmarks.nexmark [q3 q4 ..]`.
"""
