"""Benchmarks. Each compares Braid with another system or another plan, after checking that both give the same rows.

Begin with `kernel`, the join on one core. `spark` measures queries on Spark, `adaptive` plans that adapt, `transition`
the transition strategies, `plans` the planners; `plan_change` draws the picture of the README. `nexmark` has the
queries of the public benchmark. `workload`, `long_join` and `memory` are helpers. `braid bench` and `make bench` run
them.
"""
