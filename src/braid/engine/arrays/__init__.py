"""Columns in memory, read and written by row id.

Begin with `payload.py`, the columns of a window. `columns.py` stores one column, `ring.py` copies rows in and out of
rings, `jit.py` compiles loops, and `prefetch.py` asks the processor for memory ahead of time.
"""
