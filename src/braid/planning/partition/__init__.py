"""A separate plan for each part of the key space of a join (the PMJoin paper). Begin with `pmjoin.py`, the planner.

`find.py` finds the joins that can be partitioned, `functions.py` divides the values of an attribute into parts,
`values.py` has the figures of a part, and `parts.py` the partitioned joins with the guards of their parts.
"""
