"""What the driver and the workers of the Spark host must agree on.

- `packed_rows`: the columns of segments and control messages in the shuffle.
- `state_layout`: the layout of a shard's store in Spark's state store.
- `control_source` and `channel_source`: the streaming sources of control messages and of channels.
- `cache_space`: the directories of cached arrays, and how much space they may take.

Spark loads some of these modules in Python processes of their own, so they import as little as possible.
"""
