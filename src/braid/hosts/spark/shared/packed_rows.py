"""The columns of rows in the shuffle. Each row is a segment or a control message, keyed by its shard."""

PACKED_DDL = "shard int, source int, payload binary, reached timestamp"
"""`reached` is the newest event time of a segment; Spark computes its watermark from it."""

CONTROL = -1
"""The source number of control messages."""

SITE_PACKED_DDL = "shard int, source int, payload binary"
"""The same at a site of a network, where watermarks are Braid's own."""

WATERMARKS = -2
"""The source number of the watermarks of channels."""
