"""Planners that choose the order of joins, most of them together with the sites.

Begin with `exact.py`, the optimum by dynamic programming; `exhaustive.py`, `left_deep.py` and the planners of `place`
and `cluster` build on its tables. `greedy.py` and `best_sequences.py` plan a probe sequence for each head, and
`stream_join_opt.py` has the heuristic of the PMJoin paper. `plan_update.py` changes greedy sequences after a stream has
changed. `subsets.py` has the bit masks that all of them use.
"""
