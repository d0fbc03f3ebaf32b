"""Joins: new rows probe windows and join states along the operators of a dataflow.

Begin with `inner_joins.py`, the whole of it. `track.py` runs one plan along its lanes (`lanes.py`), one for each part
of the keys; `dataflow.py` is what a lane consists of, connected. `matcher.py` is one join, `combinations.py` the data
that flows between joins. `completion.py` finds missing combinations just in time, `trial.py` tries a new order out on
some of the rows, and `sampling.py` samples how streams match, whatever the plan.
"""
