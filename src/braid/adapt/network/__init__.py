"""Plans of queries over several sites that change by themselves.

Begin with `central.py`: all sites report to one, which plans. `figures.py` is what a site reports of its part of a
query, measured by a `meter.py` on each channel. `monitor.py` turns the figures of all sites into statistics, and
`join_sizes.py` adds the row sizes of joins that no channel carries yet. `proposal.py` decides whether another plan is
worth a change. With `distributed.py`, no site plans for the others: they reorder their probe sequences among
themselves. `messages.py` is what both kinds of controller have in common.
"""
