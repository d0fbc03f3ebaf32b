"""Hosts: the environments that queries run in. A host feeds rows to the shards of `braid.runtime` and takes results.

- `local` runs a query over Arrow tables in one shard in this process (`braid.run`). Begin here: `local/run.py`.
- `simulated` runs a deployment over several sites in virtual time (`braid.simulate`).
- `spark` runs streaming queries in many shards on Spark (`braid.Session`).

What a new host must provide is in `braid.runtime`.
"""
