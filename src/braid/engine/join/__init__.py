"""Joins: new rows probe windows and join states along the operators of a dataflow.

Begin with `track.py`, which runs a plan, and `dataflow.py`, which connects its parts. `matcher.py` is one join,
`combinations.py` the data that flows between joins. `completion.py` finds missing combinations just in time.
"""
