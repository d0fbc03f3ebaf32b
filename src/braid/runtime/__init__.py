"""The runtime: everything between an engine and the host that runs it. It does no I/O and reads no clock.

A query's work is split into shards; each shard has an engine of its own. The life of a shard (`shard`):

1. Open: `Shard.of(spec, store, engines, clock)` reads its `manifest` from the store, then takes its engine from the
   host's `engine_cache` or rebuilds it from the segments in the store (`retention`, `segment_log`).
2. Step: `Shard.step(segments, messages)` moves `watermarks`, obeys control `messages`, lets the engine join the rows,
   and returns the results with a `report` (`observing` counts what the engine did).
3. Close: `Shard.close()` leaves the engine in the cache and writes the manifest. Then the host commits the store.
   A step that was not committed is run again from the store as it was before.

Before the shards, `packing` cuts the rows of a stream into one segment per shard, as `routing` says; rows of heavy keys
are spread over several shards (`spread_table`, `spread_protocol`, `spread_controller`). After the shards, `totals` adds
up their reports, `adapting` hands them to the controller, `idleness` decides which streams are idle, and
`silent_streams` names those that hold back results. `fingerprint` says what must not change on a checkpoint, and
`resharding` divides the state of a query among another number of shards.

`sites` runs a query at several sites, and `migration` changes its plan between them.

A new host must provide a `Store` that commits a batch as a whole, a way to send each shard its segments and messages, a
place for results and reports, and a clock. An `EngineCache` is optional. A host without crashes to survive, like
`braid.hosts.local`, needs no store: it opens one `Shard` and steps it to the end.

Begin with `shard`; `query_spec` is what a host sends to its workers.
"""
