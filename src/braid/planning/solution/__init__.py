"""What planners return: three shapes of a solution, each with its bill. Begin with `tree.py`, the most common one."""
