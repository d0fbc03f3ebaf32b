"""The driver side of the Spark host; it runs in the program that opens a `Session`.

Begin with `session`. Beside it:

- A query: `pipeline` builds its DataFrame and `grouping` adds GROUP BY. `query` is what the program gets.
- Checks before it starts: `checks`, `spark_watermarks`.
- While it runs: `listener` receives the reports of shards, `progress` sums them up, `control` sends control messages.
- Several sites: `network` and `network_site` are what the program talks to, `deployed_query` is what it gets.
  `intake_query` publishes a stream, `site_query` runs the joins of one site (both are a `site_part`), `publisher`
  publishes their output, `site_reports` takes their reports, `channel_frames` reads channels, `succession` carries out
  plan changes, `query_watch` calls it again and again, and `site_process` runs a site of a network file.
- The Spark underneath: `cluster` (cores, partitions, labels of shards), `local_spark`, `java`, `workers`, `failures`.
- Checkpoints: `rescaling` gives one another number of shards (`checkpoint_files`, `checkpoint_log`), and
  `checkpoint_state` shows what one holds.
- For users: `job_runner` runs a job file, `notebook` shows queries in notebooks.
"""
