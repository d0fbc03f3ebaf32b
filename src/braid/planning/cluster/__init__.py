"""Planners that work on hierarchical clusters of sites (the IFLOW paper).

Begin with `hierarchy.py`, the clusters, and `views.py`, planning within one cluster; `top_down.py`, `bottom_up.py` and
`npc.py` are the planners. `kmeans.py` groups sites into clusters, and `hierarchies.py` keeps one hierarchy for each
network and cost model.
"""
