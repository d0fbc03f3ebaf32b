"""The papers' planning results, regenerated: one module for each experiment, tables and plots under docs/results."""
