"""What the driver and the workers of the Spark host must agree on.

- `packed_rows`: the columns of segments and control messages in the shuffle.
- `state_layout`: the layout of a shard's store in Spark's state store.
- `control_source`, `channel_source` and `results_source`: the streaming sources of control messages, of channels, and
  of the results of a query over a network.
- `spread_property`: how packers learn which keys are spread.
- `cache_space`: the directories of cached arrays, and how much space they may take.

Spark loads some of these modules in Python processes of their own, so they import as little as possible.
"""
