"""From finished combinations to result rows.

Begin with `emitter.py`. `conclusion.py` is what follows the inner joins: `fixed_join_stage.py` runs one outer, semi or
anti join, with the rows that may still find partners in `pending.py`; `existence.py` holds results back until EXISTS
and IN are decided. `waiting.py` is the layout of all rows that wait, and how hosts store them. `groups.py` computes
GROUP BY over the results.
"""
