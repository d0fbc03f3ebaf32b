"""Adaptation: statistics of a running query, and decisions about when to change its plan.

Begin with `adaptation.py`, the whole loop of one query. Each batch gives an `Observation` (`observation.py`, with key
sketches from `sketch.py`). The `Monitor` (`monitor.py`) turns observations into statistics, the `Controller`
(`controller.py`) compares plans under them (`costing.py`) and asks for a `PlanChange`, an `OrderTrial` (`trial.py`)
shows what it costs, and the `History` (`history.py`) records what each change brought. `cells.py` and `dividing.py`
find parts of the keys that should have an order of their own. `network` does all this for plans over several sites.

Nothing here does I/O, reads a clock or starts a thread. Time is an argument.
"""
