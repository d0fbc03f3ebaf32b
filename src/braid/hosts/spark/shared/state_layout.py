"""The layout of a shard's store in Spark's state store: one map from (source, segment number) to bytes.

Spark loads this module in a Python process that needs nothing else of Braid, so it imports nothing.
"""

STATE = "windows"
KEY_DDL = "source int, number long"
VALUE_DDL = "payload binary"
