"""Hosts: the environments that queries run in. A host feeds rows to the shards of `braid.runtime` and takes results.

- `local` runs a query over Arrow tables in one shard in this process (`braid.run`). Begin here: `local/run.py`.
- `simulated` runs a deployment over several sites in virtual time (`braid.simulate`).
- `spark` runs streaming queries in many shards on Spark (`braid.Session`).

The modules here are for several sites, in any number of programs. Sites share documents beside their channels:
`registry` has streams and deployments, `change_log` plan changes, and `figures_log` the figures that sites measure
(`site_teller`). `network_adaptation` decides on plan changes by these figures, `drops` ends a query at all its sites,
`network_status` shows the progress of channels, and `edited_file` notices an edited network file.

What a new host must provide is in `braid.runtime`.
"""
