"""The query language: from a text to a checked `Query`.

A text passes these modules in turn; begin with `reading`.

- `tokens` splits it into tokens and checks them; `dialect` parses them into sqlglot's tree. `source_parser` parses the
  entries of FROM, with windows read by `window_syntax`; `spark_parser` repairs sqlglot's own parser, `nodes` has the
  nodes that Braid adds.
- `existence` finds EXISTS and IN among conditions, and rewrites EXCEPT to NOT EXISTS.
- `views` takes SELECTs and window functions out of FROM (`view_nodes` finds them), and `table_joins` tables
  (`from_entries` reads FROM for it, `attached_tables` writes the view). `row_binding` binds what needs no windows, and
  `window_groups` rewrites groups by the windows of a function.
- `parsing` turns the tree into a `Query`: `from_clause` reads FROM, `expressions` reads expressions, with `literals`
  and `intervals` for constants and `names` for the names of functions and types, and `grouping` reads GROUP BY and
  aggregates.
- `binding` resolves names and checks types against the declared streams: `source_binding` those of FROM,
  `expression_binding` those of expressions; `resolving` says when two names match.
- What the engine does not have is left to the host, if there is one: `expressions.hosted` keeps its text,
  `host_aggregates` that of aggregates, `host_types` is what binding asks the host, `host_columns` makes columns of it.

Every error is a `QueryError`: `refusal` has those for SQL that the language lacks, `syntax_errors` those for texts that
do not parse.
"""

from braid.language.reading import bind, parse

__all__ = ["bind", "parse"]
