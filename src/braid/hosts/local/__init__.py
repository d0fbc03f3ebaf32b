"""The local host: a query over Arrow tables, in one shard without a store, all in this process.

Begin with `run`, which is `braid.run`. `streams` reads the tables, and `controller` changes the plan if the query
adapts.
"""
