"""The worker side of the Spark host; it runs in Spark's Python worker processes.

- Before the shuffle: `packer` cuts rows into segments.
- After it: `operator` is the stateful operator, and `task` steps one shard in one micro-batch. Begin with `task`.
- At a site of a network: `site_packer` and `site_task` do the same for its fragments, `results` reads results.
- State: `spark_store` is the durable store of a shard, `engine_cache` and `array_cache` keep its engine from one
  micro-batch to the next.
- `static_join` joins DataFrames that are not streaming, `selector` evaluates SELECT and HAVING over groups, and
  `task_overhead` keeps tasks short.
"""
