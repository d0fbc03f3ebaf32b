"""The driver side of the Spark host; it runs in the program that opens a `Session`.

Begin with `session`. Beside it:

- A query: `pipeline` builds its DataFrame and `grouping` adds GROUP BY. `query` is what the program gets.
- Checks before it starts: `checks`, `spark_watermarks`.
- While it runs: `listener` receives the reports of shards, `progress` sums them up, `control` sends control messages.
- Several sites: `network` and `network_site` are what the program talks to, `deployed_query` is what it gets.
  `site_query` runs the part of one site, `publisher` publishes its output, `site_reports` takes its reports,
  `channel_frames` reads channels, and `site_process` runs a site of a network file.
- The Spark underneath: `cluster` (cores, partitions, labels of shards), `local_spark`, `java`, `failures`.
- For the command line: `job_runner` runs a job file, `checkpoint_state` shows what a checkpoint holds.
"""
