"""Rows on their way through the shuffle: one for each segment or control message, keyed by its shard."""

PACKED_DDL = "shard int, source int, payload binary, reached timestamp"
"""`reached` is how far the stream has come, for Spark's watermark: one time for a segment, not for each row."""

CONTROL = -1
"""The source number of control messages."""
