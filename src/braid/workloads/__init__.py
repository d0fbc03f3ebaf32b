"""Workloads to plan: many queries over the same streams, from a seed."""
