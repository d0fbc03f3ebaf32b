"""From plans to site programs. `lower.py` lowers the solution of a planner, `one_site.py` a plan that runs at one site.

Begin with `one_site.py`: every running query goes through it. Every solution goes through `tree.py` or `sequences.py`,
and `checks.py` checks the programs. `emitting.py` has the last instructions of every program.
"""
