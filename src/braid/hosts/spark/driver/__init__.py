"""The driver side of the Spark host; it runs in the program that opens a `Session`.

Begin with `session`. Beside it:

- A query: `pipeline` builds its DataFrame and `grouping` adds GROUP BY. `query` is what the program gets.
- Checks before it starts: `checks`, `spark_watermarks`.
- While it runs: `listener` receives the reports of shards, `progress` sums them up, `control` sends control messages.
- The Spark underneath: `cluster` (cores, partitions, labels of shards), `local_spark`, `java`, `failures`.
- For the command line: `job_runner` runs a job file, `checkpoint_state` shows what a checkpoint holds.
"""
