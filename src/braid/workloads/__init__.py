"""Workloads: many queries over the same streams, generated from a seed. Begin with `workload.py`.

`synthetic.py` has random queries, `airline.py` the airline queries of the IFLOW paper, and `skewed.py` the joins on a
skewed key of the PMJoin paper. `airline_day.py` generates the rows of the airline's streams, to run queries on, and
`nexmark.py` those of Nexmark's auctions.
"""
