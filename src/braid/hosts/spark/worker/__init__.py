"""The worker side of the Spark host; it runs in Spark's Python worker processes.

- Before the shuffle: `packer` cuts rows into segments.
- After it: `operator` is the stateful operator, and `task` steps one shard in one micro-batch. Begin with `task`.
- At a site of a network: `intake_packer` packs streams where they enter a query, `site_packer` and `site_task` do for
  fragments what `packer` and `task` do for a query, and `results` reads results.
- State: `spark_store` is the durable store of a shard, `engine_cache` and `array_cache` keep its engine from one
  micro-batch to the next.
- `reshard` divides the state of old shards among new ones.
- `daemon` starts the processes of a local Spark, with all of this loaded.
- `static_join` joins DataFrames that are not streaming, `selector` evaluates SELECT and HAVING over groups, and
  `task_overhead` keeps tasks short.
"""
