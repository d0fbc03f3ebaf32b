"""Planners that fix the join tree first and choose its sites afterwards. Begin with `shape.py`, which they share.

The planners are `phased.py`, the shortest, `relaxation.py` and `in_network.py`.

`distribution.py` stands alone: it distributes operators over processors before any rate is known (D-CAPE).
"""
