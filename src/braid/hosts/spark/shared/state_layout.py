"""How the store of a shard lies in Spark's state store: one map of (source, segment number) to bytes.

Spark loads this in a Python process that asks for nothing else, so it imports nothing.
"""

STATE = "windows"
KEY_DDL = "source int, number long"
VALUE_DDL = "payload binary"
