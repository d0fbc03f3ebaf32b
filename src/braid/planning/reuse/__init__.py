"""Derived streams of other queries that a query can use.

Begin with `matching.py`, which matches an advertised join with a query; `implication.py` decides whether one condition
follows from others. `weakening.py` plans a join for two queries of which one filters more.
"""
