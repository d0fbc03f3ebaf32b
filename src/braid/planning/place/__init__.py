"""Planners that place a given tree, and the distribution of operators over processors."""
