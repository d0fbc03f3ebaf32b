"""The model: what queries, plans and networks are. Immutable classes that check themselves when they are made.

Begin with `query` (a query and its streams) and `window`. Then `graph` (the joins between the streams, from the
conditions of the query), `plan` and `tree` (join orders), `program` (the instructions that a plan is lowered to) and
`statistics`. `fixed_join` and `existence` are what follows the inner joins. `partitions` and `parts` divide the keys of
a plan. `expressions` has the expressions of the language, `network` the sites that queries run on.
"""
