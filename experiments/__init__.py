"""The planning results of the papers, reproduced: one module for each experiment, which writes a page to docs/results.

Begin with `__main__.py`, the list of experiments. `report.py` writes the pages, and `sinks.py` counts where the streams
of queries are in a hierarchy of clusters.
"""
