"""Expressions: from sqlglot's tree to Braid's `Expression`.

Begin with `reader`: it finds the function that reads a node. Those functions are in `values` (columns and constants),
`casts`, `conditions`, `functions` and `time_functions`, and share the helpers of `node_reader`.
"""
