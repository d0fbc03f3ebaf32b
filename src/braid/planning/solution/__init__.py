"""What planners return: three shapes of a solution, each with its bill.

Begin with `tree.py`, the most common one: a placed join tree. `partitioned.py` is a tree with parts of the keys, and
`sequenced.py` a placed probe sequence for each head. `written.py` has all of them as plain data.
"""
