"""Hierarchical clusters of sites, and the planners that work on them."""
