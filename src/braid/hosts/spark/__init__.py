"""The Spark host: each query is a Structured Streaming query with one stateful operator, and each shard a key of it.

- `driver` runs in the program that opens a `Session`. It builds the DataFrame of a query, follows its reports and
  decides on plan changes. Begin with `driver/session.py`, then `driver/pipeline.py`.
- `worker` runs in Spark's Python workers: it packs rows into segments before the shuffle, and steps shards after it.
  Begin with `worker/task.py`.
- `shared` is what both sides must agree on.

Only this package imports PySpark. A micro-batch goes this way: `worker/packer.py` cuts the rows of each stream into
segments, Spark shuffles the segments by shard, `worker/operator.py` hands them to a `Task`, the task opens a shard on
Spark's state store, steps it and closes it, and Spark commits. The reports of the shards reach `driver/listener.py`,
and plan changes go back as control messages (`driver/control.py`, `shared/control_source.py`).
"""
