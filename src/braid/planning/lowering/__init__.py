"""From plans to site programs. `lower.py` lowers the solution of a planner, `one_site.py` a plan that runs at one site.

Every solution goes through `tree.py` or `sequences.py`. Begin with `one_site.py`: every running query goes
through it.
"""
